import asyncio
import itertools
import os
import signal
import time

import numpy as np
import pytest
import pytest_asyncio

from voxgate.synth.cache.levels import Levels
from voxgate.synth.segment import Boundary, Segment, Style
from voxgate.synth.speech import Speech
from voxgate.synth.synthesizer import Synthesizer

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEART = Style("heart")
LONG = "She opened the window, looked at the rain for a while, and then went back to her book without a word. "

ids = itertools.count(1)


class Listener:
    """Keeps what it hears."""

    def __init__(self):
        self.heard = []
        self.failures = []
        self.changed = asyncio.Event()

    def on_audio(self, utterance, segment, speech, last=True):
        self.heard.append((utterance, segment.index, speech.pcm))
        self.changed.set()

    def on_failed(self, utterance, message):
        self.failures.append((utterance, message))
        self.changed.set()

    async def until(self, condition):
        async with asyncio.timeout(30):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def segments(self, count):
        await self.until(lambda: len(self.heard) >= count)
        return [(utterance, index) for utterance, index, _pcm in self.heard]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def synthesizer():
    synthesizer = Synthesizer(workers=2, nice=0)
    await synthesizer.start()
    await synthesizer.wait_ready()
    yield synthesizer
    await synthesizer.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def cached():
    """One worker, and memory for all that it says."""
    synthesizer = Synthesizer(workers=1, nice=0, caches=Levels(64 * 2**20))
    await synthesizer.start()
    await synthesizer.wait_ready()
    yield synthesizer
    await synthesizer.close()


@pytest.fixture
def listener():
    return Listener()


def segments(*texts):
    inner = Boundary.SENTENCE
    bounds = [Boundary.START, *[inner] * (len(texts) - 1), Boundary.END]
    return [Segment(n, text, 0, len(text), bounds[n], bounds[n + 1]) for n, text in enumerate(texts)]


def speak(synthesizer, listener, *texts, style=HEART):
    utterance = next(ids)
    synthesizer.open(utterance, style, listener)
    for segment in segments(*texts):
        synthesizer.speak(utterance, segment)
    return utterance


async def test_the_voices_are_known_once_ready(synthesizer):
    assert synthesizer.ready
    assert [voice.id for voice in synthesizer.voices] == ["heart"]
    assert len(synthesizer.worker_pids) == 2


async def test_segments_of_an_utterance_are_heard_in_their_order(synthesizer, listener):
    utterance = speak(synthesizer, listener, "One.", "Two.", "Three.")

    assert await listener.segments(3) == [(utterance, 0), (utterance, 1), (utterance, 2)]
    assert all(pcm.dtype == np.int16 and pcm.ndim == 1 and len(pcm) for *_, pcm in listener.heard)
    assert synthesizer.backlog == 0
    synthesizer.close_utterance(utterance)


async def test_the_same_text_sounds_the_same_in_every_utterance(synthesizer, listener):
    utterances = [speak(synthesizer, listener, "The same, whoever computes it.") for _ in range(4)]

    await listener.segments(4)

    first, *others = [pcm for *_, pcm in listener.heard]
    assert sorted(utterance for utterance, *_ in listener.heard) == utterances
    assert all(np.array_equal(first, other) for other in others)


async def test_a_newcomer_is_heard_before_the_segments_that_were_begun_for_others(listener):
    synthesizer = Synthesizer(workers=1, express=1)
    await synthesizer.start()
    await synthesizer.wait_ready()
    try:
        first = speak(synthesizer, listener, "One.", " ".join([LONG] * 6))
        await listener.segments(1)  # the long one is with the only other worker now
        newcomer = speak(synthesizer, listener, "Two.")

        assert (await listener.segments(3))[1:] == [(newcomer, 0), (first, 1)]
    finally:
        await synthesizer.close()


async def test_a_closed_utterance_is_heard_no_more(synthesizer, listener):
    closed = speak(synthesizer, listener, LONG, LONG, LONG)  # the first is with a worker, two wait
    synthesizer.close_utterance(closed)
    assert synthesizer.backlog == 0

    others = {speak(synthesizer, listener, LONG), speak(synthesizer, listener, LONG)}

    # Two long ones after it on two workers: what was in flight of the closed one has come back in between.
    assert {utterance for utterance, _index in await listener.segments(2)} == others


async def test_a_listener_may_close_its_utterance_while_it_is_told(synthesizer):
    class Leaver(Listener):
        def on_audio(self, utterance, segment, speech, last=True):
            synthesizer.close_utterance(utterance)
            super().on_audio(utterance, segment, speech, last)

    leaver, follower = Leaver(), Listener()
    speak(synthesizer, leaver, "One.", "Two.")
    await leaver.segments(1)

    speak(synthesizer, follower, "Three.", "Four.")
    await follower.segments(2)

    assert len(leaver.heard) == 1
    assert synthesizer.backlog == 0


async def test_a_refused_segment_ends_its_utterance_only(synthesizer, listener):
    other = Listener()
    refused = speak(synthesizer, listener, "One.", "Two.", style=Style("nobody"))
    speak(synthesizer, other, "Mine goes on.")

    await other.segments(1)
    await listener.until(lambda: listener.failures)

    assert listener.failures == [(refused, "unknown voice 'nobody'")]
    assert listener.heard == []
    assert other.failures == []
    assert synthesizer.backlog == 0


async def test_what_is_said_to_an_unknown_utterance_is_ignored(synthesizer):
    synthesizer.speak(10**9, segments("Hello.")[0])
    synthesizer.cover(10**9, 0.0)
    synthesizer.hold(10**9)
    synthesizer.release(10**9)
    synthesizer.close_utterance(10**9)

    assert synthesizer.backlog == 0


async def test_an_id_that_is_open_cannot_be_opened(synthesizer, listener):
    utterance = next(ids)
    synthesizer.open(utterance, HEART, listener)

    with pytest.raises(ValueError, match="open already"):
        synthesizer.open(utterance, HEART, listener)
    synthesizer.close_utterance(utterance)


async def test_a_held_utterance_waits_for_its_release(synthesizer, listener):
    held = next(ids)
    synthesizer.open(held, HEART, listener)
    synthesizer.hold(held)
    synthesizer.speak(held, segments("Later.")[0])

    other = speak(synthesizer, listener, "Sooner.")
    assert await listener.segments(1) == [(other, 0)]

    synthesizer.release(held)
    assert await listener.segments(2) == [(other, 0), (held, 0)]


async def test_a_listener_with_audio_in_hand_waits_until_it_needs_more(synthesizer, listener):
    covered = next(ids)
    synthesizer.open(covered, HEART, listener)
    synthesizer.cover(covered, time.monotonic() + 3600)
    synthesizer.speak(covered, segments("No hurry.")[0])

    other = speak(synthesizer, listener, "Me first.")
    assert await listener.segments(1) == [(other, 0)]
    assert synthesizer.backlog == 1

    synthesizer.cover(covered, time.monotonic())
    assert await listener.segments(2) == [(other, 0), (covered, 0)]


async def test_a_lead_that_melts_wakes_the_scheduler_by_itself(synthesizer, listener):
    utterance = next(ids)
    synthesizer.open(utterance, HEART, listener)
    synthesizer.cover(utterance, time.monotonic() + synthesizer.target_lead_s + 0.2)
    synthesizer.speak(utterance, segments("Now.")[0])
    assert synthesizer.backlog == 1

    assert await listener.segments(1) == [(utterance, 0)]


async def turns(count):
    """Let the loop go round so often."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_was_said_is_not_computed_again_wherever_it_is_said(cached, listener):
    speak(cached, listener, "Before.", "Once and for all.", "After.")
    await listener.segments(3)
    computed = cached.compute_s
    later = Listener()

    speak(cached, later, "Before.", "Once and for all.", "Once and for all.", "After.")
    await later.segments(4)

    assert [index for _, index, _ in later.heard] == [0, 1, 2, 3]
    assert all(
        np.array_equal(now, listener.heard[then][2]) for (*_, now), then in zip(later.heard, (0, 1, 1, 2), strict=True)
    )
    assert cached.compute_s == computed


async def test_what_is_remembered_waits_for_what_is_not(cached, listener):
    first = speak(cached, listener, "A beginning.", "Known already.", "Known as well.")
    await listener.segments(3)
    cached.close_utterance(first)

    speak(cached, listener, "This is new.", "Known already.", "And this too.", "Known as well.")
    await listener.segments(7)

    assert [index for _, index, _ in listener.heard[3:]] == [0, 1, 2, 3]


async def test_nothing_is_heard_while_it_is_being_said(cached, listener):
    speak(cached, listener, "Say it.")
    await listener.segments(1)
    later = Listener()

    speak(cached, later, "Say it.")

    assert later.heard == []
    assert await later.segments(1)


async def test_what_is_remembered_comes_no_further_ahead_than_what_is_computed(cached, listener):
    speak(cached, listener, *["Again and again."] * 3)
    await listener.segments(3)
    patient = Listener()

    utterance = speak(cached, patient, *["Again and again."] * 1000)
    await turns(500)

    seconds = [len(pcm) / 24000 for *_, pcm in patient.heard]
    assert cached.target_lead_s <= sum(seconds) <= cached.target_lead_s + max(seconds) + 1.0
    assert cached.backlog == 1000 - len(seconds)
    cached.close_utterance(utterance)


async def test_a_listener_with_audio_in_hand_is_told_nothing_remembered_either(cached, listener):
    speak(cached, listener, "There is time.")
    await listener.segments(1)
    covered = Listener()
    utterance = next(ids)
    cached.open(utterance, HEART, covered)
    cached.cover(utterance, time.monotonic() + cached.target_lead_s + 0.2)

    cached.speak(utterance, segments("There is time.")[0])
    await turns(20)
    assert covered.heard == []

    assert await covered.segments(1)


async def test_a_held_utterance_is_told_nothing_remembered(cached, listener):
    speak(cached, listener, "Hold on.")
    await listener.segments(1)
    held = Listener()
    utterance = next(ids)
    cached.open(utterance, HEART, held)
    cached.hold(utterance)

    cached.speak(utterance, segments("Hold on.")[0])
    await turns(20)
    assert held.heard == []

    cached.release(utterance)
    assert await held.segments(1)


async def test_a_closed_utterance_is_told_nothing_remembered(cached, listener):
    speak(cached, listener, "Never mind.")
    await listener.segments(1)
    closed = Listener()

    cached.close_utterance(speak(cached, closed, "Never mind."))
    await turns(20)

    assert closed.heard == []


async def test_the_same_sentence_for_many_at_once_is_computed_once(cached, listener):
    before = cached.compute_s, cached.audio_s
    for _ in range(20):
        speak(cached, listener, "All of you, at the same time.")

    await listener.segments(20)

    assert all(np.array_equal(pcm, listener.heard[0][2]) for *_, pcm in listener.heard)
    assert cached.audio_s - before[1] == pytest.approx(len(listener.heard[0][2]) / 24000)


async def test_what_was_cancelled_is_not_remembered(cached, listener):
    cancelled = speak(cached, Listener(), "Cut short, so that it is not kept.")
    cached.close_utterance(cancelled)
    speak(cached, listener, "The worker is done with it when this is heard.")
    await listener.segments(1)
    misses = cached.caches.requests["memory", "miss"]

    speak(cached, listener, "Cut short, so that it is not kept.")
    await listener.segments(2)

    assert cached.caches.requests["memory", "miss"] == misses + 1


class SlowStore:
    """A store that is asked, and answers when it is told to."""

    def __init__(self):
        self.questions = []

    def fetch(self, key, answer):
        self.questions.append(answer)
        return "asked"

    def put(self, key, speech):
        return "busy"

    async def close(self):
        pass


async def test_a_store_is_asked_before_the_engine_and_either_may_answer(cached):
    store = SlowStore()
    asking = Synthesizer(workers=1, nice=0, caches=Levels(0, store))
    await asking.start()
    await asking.wait_ready()
    found, missed, gone = Listener(), Listener(), Listener()
    speech = Speech(np.arange(100, dtype=np.int16))
    speak(asking, found, "Found.")
    speak(asking, missed, "Missed.")
    left = speak(asking, gone, "Gone.")
    await turns(20)
    assert len(store.questions) == 3
    assert asking.compute_s == 0

    asking.close_utterance(left)
    for answer, result, said in zip(store.questions, ("hit", "miss", "hit"), (speech, None, speech), strict=True):
        answer(result, said)
    await found.segments(1)
    await missed.segments(1)

    assert found.heard[0][2] is speech.pcm
    assert len(missed.heard[0][2]) > 1000
    assert gone.heard == []
    await asking.close()


async def test_a_killed_worker_ends_what_it_had_in_hand_only(synthesizer, listener):
    utterances = {speak(synthesizer, listener, LONG * 3, "And on.") for _ in range(2)}
    for utterance in utterances:
        synthesizer.hold(utterance)  # the first segments are with the workers, the second ones must wait

    os.kill(synthesizer.worker_pids[0], signal.SIGKILL)

    await listener.until(lambda: listener.heard and listener.failures)
    [(failed, message)] = listener.failures
    (survivor,) = utterances - {failed}
    assert message == "the engine worker died"
    assert await listener.segments(1) == [(survivor, 0)]
    assert synthesizer.ready

    synthesizer.cover(survivor, time.monotonic())
    synthesizer.release(survivor)
    assert await listener.segments(2) == [(survivor, 0), (survivor, 1)]
    assert synthesizer.restarts == 1
    assert synthesizer.backlog == 0
