import math
import random
from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from voxgate.synth.engine import Ended, Steps
from voxgate.synth.ramp import Ramp, Rung, ramp
from voxgate.synth.runner import JOINS, TARGET_LEAD_S, Chunk, Runner, Turn
from voxgate.synth.segment import Boundary, Segment, Style

RATE = 24000
SAMPLES = 480
STEPS = Steps(samples=SAMPLES, step_s=0.004, decode_s=0.002, least_ahead=1, most_ahead=6)
NOTHING: Mapping[int, Ended] = {}
ANYBODY = Style("v")


def segment(text: str = "Hello.") -> Segment:
    return Segment(0, text, 0, len(text), Boundary.START, Boundary.END)


def runner(slots: int = 4, most_steps: int = 2048, chunks: Ramp | None = None) -> Runner:
    return Runner(slots, most_steps, RATE, chunks or ramp(STEPS, RATE))


def steady(new: int, ahead: int) -> Ramp:
    """Chunks that never grow."""
    return Ramp((Rung(new, ahead),), True, False, 0.02, 0.004, 0.002)


def jobs(turn: Turn) -> list[int]:
    return [job for _slot, job in turn.rows]


def play(it: Runner, now: float, ended: dict[int, int] | None = None, took_s: float = 0.004) -> list[Chunk]:
    """One round in which these jobs end after so many steps; the chunks that are still wanted."""
    turn = it.turn(now)
    ends = {slot: Ended(ended[job]) for slot, job in turn.rows if ended and job in ended}
    chunks = it.stepped(turn, ends, took_s).chunks
    return [chunk for chunk in chunks if it.emitted(chunk, (chunk.window.end - chunk.window.begin) * SAMPLES, now)]


# --- joining and leaving --------------------------------------------------------------------------------------------


def test_a_segment_joins_those_in_mid_stream_at_the_next_step():
    it = runner()
    it.add(1, segment(), ANYBODY, -math.inf)
    assert jobs(it.turn(0.0)) == [1]

    it.add(2, segment(), ANYBODY, -math.inf)
    turn = it.turn(0.0)

    assert [join.job for join in turn.joins] == [2]
    assert sorted(jobs(turn)) == [1, 2]


def test_who_finds_no_slot_joins_when_one_is_free_and_who_has_heard_nothing_goes_first():
    it = runner(slots=1)
    it.add(1, segment(), ANYBODY, -math.inf)
    it.turn(0.0)
    it.add(2, segment(), ANYBODY, 3.0)
    it.add(3, segment(), ANYBODY, -math.inf)
    it.add(4, segment(), ANYBODY, -math.inf)
    assert jobs(it.turn(0.0)) == [1]

    it.cancel(1)

    assert jobs(it.turn(0.0)) == [3]


def test_a_cancelled_segment_is_stepped_no_more_and_its_slot_is_released_by_the_next_turn():
    it = runner(slots=1, chunks=steady(1, 0))
    it.add(1, segment(), ANYBODY, -math.inf)
    turn = it.turn(0.0)
    it.add(2, segment(), ANYBODY, -math.inf)

    it.cancel(1)  # while the engine computes its step

    assert it.stepped(turn, NOTHING).chunks == []
    after = it.turn(0.0)
    assert (after.releases, jobs(after)) == ((0,), [2])


def test_a_chunk_that_was_decoded_while_its_segment_was_cancelled_is_wanted_by_nobody():
    it = runner(slots=1, chunks=steady(1, 0))
    it.add(1, segment(), ANYBODY, -math.inf)
    (chunk,) = it.stepped(it.turn(0.0), NOTHING).chunks
    it.cancel(1)

    assert not it.emitted(chunk, SAMPLES, 0.0)


def test_what_comes_back_for_a_slot_that_is_anothers_by_now_is_not_taken_for_its():
    it = runner(slots=1, chunks=steady(1, 0))
    it.add(1, segment(), ANYBODY, -math.inf)
    turn = it.turn(0.0)
    (late,) = it.stepped(turn, NOTHING).chunks
    it.cancel(1)
    it.add(2, segment(), ANYBODY, -math.inf)
    assert jobs(it.turn(0.0)) == [2]  # in the same slot

    assert it.stepped(turn, {0: Ended(1)}).chunks == []
    assert not it.emitted(late, SAMPLES, 0.0)
    assert jobs(it.turn(0.0)) == [2]


def test_a_crowd_joins_a_few_at_a_time():
    it = runner(slots=16)
    for job in range(10):
        it.add(job, segment(), ANYBODY, -math.inf)

    assert [len(it.turn(0.0).joins) for _ in range(4)] == [JOINS, JOINS, 2, 0]


def test_a_narrow_batch_takes_nobody_new_until_it_is_under_its_width_and_nobody_in_it_leaves():
    it = runner(slots=4)
    for job in range(4):
        it.add(job, segment(), ANYBODY, -math.inf)
    it.turn(0.0)
    it.narrow(2)
    it.add(9, segment(), ANYBODY, -math.inf)
    assert sorted(jobs(it.turn(0.0))) == [0, 1, 2, 3]

    it.cancel(0)
    it.cancel(1)
    assert sorted(jobs(it.turn(0.0))) == [2, 3]
    it.cancel(2)
    assert sorted(jobs(it.turn(0.0))) == [3, 9]


def test_a_width_is_never_under_one_or_over_the_slots():
    it = runner(slots=4)
    it.narrow(0)
    assert it.width == 1
    it.narrow(99)
    assert it.width == 4


def test_a_segment_that_cannot_be_loaded_gives_its_slot_back():
    it = runner(slots=1)
    it.add(1, segment(), ANYBODY, -math.inf)
    it.turn(0.0)

    assert it.drop(1)
    assert it.turn(0.0).releases == (0,)
    assert not it.drop(1)


def test_a_job_that_is_here_cannot_be_added():
    it = runner()
    it.add(1, segment(), ANYBODY, -math.inf)

    with pytest.raises(ValueError, match="here already"):
        it.add(1, segment(), ANYBODY, -math.inf)


# --- chunks ---------------------------------------------------------------------------------------------------------


def windows(chunks: list[Chunk]) -> list[tuple[int, int, int, bool]]:
    return [(chunk.window.begin, chunk.window.end, chunk.window.known, chunk.window.last) for chunk in chunks]


def test_a_chunk_is_due_when_its_steps_and_its_look_ahead_are_there():
    it = runner(chunks=steady(3, 2))
    it.add(1, segment(), ANYBODY, -math.inf)

    assert [windows(play(it, 0.0)) for _ in range(8)] == [
        *([[]] * 4),
        [(0, 3, 5, False)],
        *([[]] * 2),
        [(3, 6, 8, False)],
    ]


def test_the_last_chunk_needs_no_look_ahead_and_the_step_of_the_end_token_is_no_sound():
    it = runner(chunks=steady(3, 2))
    it.add(1, segment(), ANYBODY, -math.inf)
    for _ in range(5):
        play(it, 0.0)

    assert windows(play(it, 0.0, {1: 5})) == [(3, 5, 5, True)]
    assert it.jobs == 0


def test_an_end_that_is_told_late_cuts_no_sound_that_was_sent():
    it = runner(chunks=steady(2, 1))
    it.add(1, segment(), ANYBODY, -math.inf)
    for _ in range(3):
        play(it, 0.0)

    assert windows(play(it, 0.0, {1: 2})) == [(2, 2, 2, True)]


def test_a_segment_that_fails_in_mid_stream_is_told_and_leaves():
    it = runner(slots=1)
    it.add(1, segment(), ANYBODY, -math.inf)
    turn = it.turn(0.0)

    assert it.stepped(turn, {0: Ended(0, "empty")}).failed == [(1, "empty")]
    assert (it.jobs, it.turn(0.0).releases) == (0, (0,))


def test_a_segment_that_never_ends_is_ended_where_its_slot_is_full():
    it = runner(most_steps=10, chunks=steady(4, 0))
    it.add(1, segment(), ANYBODY, -math.inf)

    chunks = [window for _ in range(12) for window in windows(play(it, 0.0))]

    assert chunks == [(0, 4, 4, False), (4, 8, 8, False), (8, 10, 10, True)]


def test_chunks_grow_only_while_the_lead_lasts_for_the_longer_one():
    served, dry = runner(), runner()
    lengths: dict[Runner, list[int]] = {served: [], dry: []}
    for it, lead in ((served, 3.0), (dry, -math.inf)):
        it.add(1, segment(), ANYBODY, lead)
        for step in range(60):
            now = step * 0.019  # steps take five times what was declared, almost as long as their sound
            chunks = play(it, now, took_s=0.019)
            lengths[it] += [chunk.window.end - chunk.window.begin for chunk in chunks]

    assert lengths[served][-1] > 2 * lengths[served][0]
    assert lengths[dry][-1] <= lengths[dry][0] + 1


def test_engine_time_is_shared_among_those_that_were_stepped_together():
    it = runner(chunks=steady(2, 0))
    for job in (1, 2):
        it.add(job, segment(), ANYBODY, -math.inf)
    it.stepped(it.turn(0.0), NOTHING, 0.010)

    chunks = it.stepped(it.turn(0.0), NOTHING, 0.006).chunks

    assert [round(chunk.compute_s, 6) for chunk in chunks] == [0.008, 0.008]


# --- who is stepped -------------------------------------------------------------------------------------------------


def test_a_listener_with_lead_enough_is_left_out_until_it_has_melted():
    it = runner()
    it.add(1, segment(), ANYBODY, 10.0)
    it.add(2, segment(), ANYBODY, -math.inf)

    assert jobs(it.turn(0.0)) == [2]
    it.cancel(2)
    assert it.turn(0.0).releases
    assert it.wake_at(0.0) == 10.0 - TARGET_LEAD_S
    assert jobs(it.turn(6.5)) == [1]


def test_who_has_lead_enough_goes_on_while_someone_waits_for_a_slot():
    it = runner(slots=1)
    it.add(1, segment(), ANYBODY, 10.0)
    assert jobs(it.turn(0.0)) == []

    it.add(2, segment(), ANYBODY, -math.inf)

    assert jobs(it.turn(0.0)) == [1]


def test_a_held_segment_keeps_its_slot_and_is_not_stepped():
    it = runner(slots=1)
    it.add(1, segment(), ANYBODY, -math.inf)
    it.turn(0.0)
    it.hold(1)
    assert jobs(it.turn(0.0)) == []
    assert it.wake_at(0.0) == math.inf
    assert it.taken == 1

    it.unhold(1)
    assert jobs(it.turn(0.0)) == [1]


# --- whatever happens -----------------------------------------------------------------------------------------------


class Machine(RuleBasedStateMachine):
    """A runner between a gateway that says anything and an engine that answers as late as it likes.

    The model of the engine knows what is in each slot: it is told by joins and releases, and nothing else.
    """

    added = Bundle("added")
    pending = Bundle("pending")
    due = Bundle("due")

    @initialize(slots=st.integers(1, 5), new=st.integers(1, 3), ahead=st.integers(0, 2))
    def begin(self, slots: int, new: int, ahead: int) -> None:
        self.it = runner(slots, most_steps=40, chunks=steady(new, ahead))
        self.slots = slots
        self.now = 0.0
        self.number = 0
        self.loaded: dict[int, int] = {}  # what the engine has, by slot
        self.live: set[int] = set()  # jobs that somebody wants
        self.emitted: dict[int, int] = {}  # steps whose sound has been told, by job

    @rule(target=added, lead=st.sampled_from([-math.inf, 1.0, 9.0]))
    def add(self, lead: float) -> int:
        self.number += 1
        self.it.add(self.number, segment(), ANYBODY, self.now + lead)
        self.live.add(self.number)
        self.emitted[self.number] = 0
        return self.number

    @rule(job=added)
    def cancel(self, job: int) -> None:
        self.it.cancel(job)
        self.live.discard(job)

    @rule(job=added, held=st.booleans())
    def hold(self, job: int, held: bool) -> None:
        (self.it.hold if held else self.it.unhold)(job)

    @rule(job=added, lead=st.sampled_from([-1.0, 0.0, 9.0]))
    def cover(self, job: int, lead: float) -> None:
        self.it.cover(job, self.now + lead)

    @rule(width=st.integers(0, 6))
    def narrow(self, width: int) -> None:
        self.it.narrow(width)

    @rule(target=pending)
    def turn(self) -> Turn:
        self.now += 0.1
        taken = self.it.taken
        turn = self.it.turn(self.now)
        for slot in turn.releases:
            del self.loaded[slot]
        for join in turn.joins:
            assert join.slot not in self.loaded, "joined a slot that is in use"
            self.loaded[join.slot] = join.job
        for slot, job in turn.rows:
            assert self.loaded[slot] == job
            assert job in self.live
        assert not turn.joins or taken + len(turn.joins) <= max(self.it.width, taken)
        return turn

    @rule(target=due, turn=consumes(pending), ends=st.sets(st.integers(0, 4)), fails=st.booleans())
    def stepped(self, turn: Turn, ends: set[int], fails: bool) -> list[Chunk]:
        ended = {slot: Ended(40, "why" if fails else "") for slot in ends}
        result = self.it.stepped(turn, ended)
        for job, _why in result.failed:
            assert job in self.live
            self.live.discard(job)
        for chunk in result.chunks:
            assert self.loaded[chunk.window.slot] == chunk.job
        return result.chunks

    @rule(chunks=consumes(due))
    def decoded(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            wanted = self.it.emitted(chunk, SAMPLES, self.now)
            assert wanted == (chunk.job in self.live)
            if wanted:
                assert chunk.window.begin >= self.emitted[chunk.job]
                self.emitted[chunk.job] = chunk.window.end
                if chunk.window.last:
                    self.live.discard(chunk.job)

    @invariant()
    def slots_are_never_lost(self) -> None:
        if hasattr(self, "it"):
            assert self.it.free + self.it.leaving + self.it.taken == self.slots
            assert self.it.jobs == len(self.live)
            assert self.it.taken <= len(self.live)
            assert self.it.leaving + self.it.taken == len(self.loaded)

    @rule()
    def a_cancelled_house_is_empty_after_one_turn(self) -> None:
        for job in list(self.live):
            self.cancel(job)
        self.turn()
        assert (self.it.free, self.loaded) == (self.slots, {})


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestWhateverHappens = Machine.TestCase


def test_minutes_of_listeners_who_come_and_go_are_all_served_without_a_gap():
    """In virtual time: 24 slots at 3 ms a step, listeners of 1 to 5 s, some of whom hang up."""
    dice = random.Random(7)
    it = runner(slots=24)
    length: dict[int, int] = {}
    dry_at: dict[int, float] = {}
    sent: dict[int, int] = {}
    gaps: list[float] = []
    whole, hung_up, number, now = 0, 0, 0, 0.0
    while now < 120.0:
        if dice.random() < 0.015:
            number += 1
            length[number], sent[number] = dice.randint(50, 250), 0
            it.add(number, segment(), ANYBODY, -math.inf)
        for job in [job for job in length if dice.random() < 0.0004]:
            it.cancel(job)
            del length[job]
            hung_up += 1
        turn = it.turn(now)
        now += 0.003
        for _slot, job in turn.rows:
            sent[job] += 1
        ended = {slot: Ended(length[job]) for slot, job in turn.rows if sent[job] >= length[job]}
        for chunk in it.stepped(turn, ended, 0.003).chunks:
            seconds = (chunk.window.end - chunk.window.begin) * 0.02
            assert it.emitted(chunk, round(seconds * RATE), now)
            if chunk.job in dry_at:
                gaps.append(max(0.0, now - dry_at[chunk.job]))
            dry_at[chunk.job] = max(dry_at.get(chunk.job, now), now) + seconds
            if chunk.window.last:
                whole += chunk.window.end == length.pop(chunk.job)

    assert whole > 300
    assert hung_up > 20
    assert max(gaps) == 0.0
    assert it.taken <= len(length)
