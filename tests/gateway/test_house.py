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

    def admitted(self, ticket: int, answer: Permit | Refusal) -> None:
        self.answers.append((ticket, answer))

    def ask(self, ticket: int, **fields: Any) -> object:
        return self.house.admit(self, Ask(ticket, "hibari", **fields))


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


async def test_a_closed_house_answers_nobody():
    scene = Scene()
    scene.ask(1, max_wait_s=20.0)
    scene.house.close()
    scene.forecast_s = 0.0
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert scene.answers == []


async def test_first_audio_and_underruns_are_told_to_admission_and_to_whoever_listens():
    scene, heard = Scene(), list[float]()
    scene.house.on_first_audio.append(lambda _permit, wait: heard.append(wait))
    scene.forecast_s = 0.0
    permit = scene.ask(1)
    assert isinstance(permit, Permit)
    scene.house.heard_first(permit, 0.04)
    scene.house.ran_dry(permit, 0.3)
    permit.release(Outcome.SERVED, clock())

    assert (heard, scene.house.underruns, scene.house.underrun_s) == ([0.04], 1, 0.3)
    assert scene.controller.lines["hibari"].limit.current < 200
