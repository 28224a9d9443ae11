import asyncio
from typing import Any

from running import eventually
from voxgate.admission.answer import Ask, Outcome, Permit, Refusal, Waiting
from voxgate.admission.controller import Controller, Limits
from voxgate.gateway.house import House, clock


class Idle:
    """A synthesizer nobody speaks by."""

    backlog = 0


class Scene:
    def __init__(self) -> None:
        self.forecast_s = 0.05
        self.controller = Controller(Limits(), forecast=lambda _ask, _now: self.forecast_s)
        self.house = House(Idle(), None, self.controller)  # pyright: ignore[reportArgumentType]
        self.answers: list[tuple[int, Permit | Refusal]] = []
        self.breaks_on: int | None = None
        self.asks_again: dict[int, int] = {}

    def admitted(self, ticket: int, answer: Permit | Refusal) -> None:
        if ticket == self.breaks_on:
            raise RuntimeError("no socket")
        self.answers.append((ticket, answer))
        if again := self.asks_again.pop(ticket, None):
            assert self.ask(again, max_wait_s=2.0) == Waiting(again)

    def ask(self, ticket: int, **fields: Any) -> object:
        return self.house.admit(self, Ask(ticket, "hibari", **fields))


def timers(house: House) -> list[asyncio.TimerHandle]:
    """What of the house the running loop will call."""
    scheduled = getattr(asyncio.get_running_loop(), "_scheduled")  # noqa: B009
    return [handle for handle in scheduled if "House._answer_waiting" in repr(handle) and not handle.cancelled()]


async def test_who_waits_is_answered_when_the_engine_can_begin():
    scene, waits = Scene(), list[float]()
    scene.house.on_queued.append(waits.append)
    assert scene.ask(1, max_wait_s=20.0) == Waiting(1)
    scene.forecast_s = 0.0
    await eventually("an answer", lambda: bool(scene.answers))

    ((ticket, permit),) = scene.answers
    assert (ticket, type(permit), len(waits)) == (1, Permit, 1)


async def test_who_waits_too_long_is_refused():
    scene = Scene()
    scene.ask(1, max_wait_s=0.11)
    await eventually("an answer", lambda: bool(scene.answers))
    assert [(ticket, type(answer)) for ticket, answer in scene.answers] == [(1, Refusal)]


async def test_what_is_withdrawn_is_not_answered():
    scene = Scene()
    scene.ask(1, max_wait_s=20.0)
    scene.ask(2, max_wait_s=20.0)
    scene.house.withdraw(1)
    scene.forecast_s = 0.0
    await eventually("an answer", lambda: bool(scene.answers))
    assert [ticket for ticket, _ in scene.answers] == [2]
    assert scene.controller.waiting == 0


async def test_a_closed_house_answers_nobody_and_leaves_nothing_behind():
    scene, other = Scene(), Scene()
    scene.ask(1, max_wait_s=20.0)
    other.ask(1, max_wait_s=20.0)
    scene.house.close()
    scene.forecast_s = other.forecast_s = 0.0
    await eventually("an answer in another house", lambda: bool(other.answers))
    assert (scene.answers, scene.controller.waiting, timers(scene.house)) == ([], 0, [])


async def test_nobody_waits_for_whom_there_is_no_timer_and_none_is_left_when_all_are_answered():
    scene = Scene()
    for ticket in range(3):
        scene.ask(ticket, max_wait_s=20.0)
    assert len(timers(scene.house)) == 1
    scene.forecast_s = 0.0
    await eventually("all answers", lambda: len(scene.answers) == 3)
    assert timers(scene.house) == []


async def test_one_that_breaks_on_its_answer_does_not_cost_the_others_theirs():
    scene, problems = Scene(), list[str]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(str(context["exception"])))
    scene.breaks_on = 1
    for ticket in (1, 2, 3):
        scene.ask(ticket, max_wait_s=20.0)
    scene.forecast_s = 0.0
    await eventually("the other answers", lambda: [ticket for ticket, _ in scene.answers] == [2, 3])
    assert problems == ["no socket"]


async def test_who_asks_again_on_being_answered_is_answered_again():
    scene = Scene()
    scene.asks_again = {1: 2, 2: 3}
    scene.ask(1, max_wait_s=0.11)  # refused in the end, and asks anew
    await eventually("all answers", lambda: [ticket for ticket, _ in scene.answers] == [1, 2, 3])
    assert (scene.controller.waiting, timers(scene.house)) == (0, [])


async def test_first_audio_and_underruns_are_told_to_admission_and_to_whoever_listens():
    scene, heard = Scene(), list[tuple[float, str]]()
    scene.house.on_first_audio.append(lambda _permit, wait, protocol: heard.append((wait, protocol)))
    scene.forecast_s = 0.0
    permit = scene.ask(1)
    assert isinstance(permit, Permit)
    scene.house.heard_first(permit, 0.04, 0.0, "cartesia")
    scene.house.ran_dry(permit, 0.3)
    other = scene.ask(2)
    assert isinstance(other, Permit)
    scene.house.ran_dry(other, 0.1)

    assert (heard, scene.house.underruns, scene.house.underrun_s) == ([(0.04, "cartesia")], 2, 0.4)
    assert scene.controller.lines["hibari"].limit.current < 200
    for each in (permit, other):
        each.release(Outcome.SERVED, clock())
