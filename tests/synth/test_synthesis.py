import asyncio
import itertools
import os
import signal

import numpy as np
import pytest
import pytest_asyncio

from fakes.stepping import sound
from running import eventually
from voxgate.synth.cache.levels import Levels
from voxgate.synth.engine import Setup
from voxgate.synth.pool import WorkersUnavailable
from voxgate.synth.segment import Boundary, Segment, Style
from voxgate.synth.synthesis import Synthesis, VoiceClaimed
from voxgate.synth.synthesizer import Synthesizer

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEART, TONE = Style("heart"), Style("tone")
FACTORY = "fakes.stepping:make"
LONG = " ".join(["again"] * 100)
ids = itertools.count(1)


class Listener:
    """Keeps what it hears, by segment."""

    def __init__(self):
        self.sounds = {}
        self.whole = []
        self.failures = []
        self.changed = asyncio.Event()

    def on_audio(self, utterance, segment, speech, last=True):
        assert segment.index not in self.whole
        self.sounds.setdefault(segment.index, []).append(speech.pcm)
        if last:
            self.whole.append(segment.index)
        self.changed.set()

    def on_failed(self, utterance, message):
        self.failures.append(message)
        self.changed.set()

    def pcm(self, index):
        return np.concatenate(self.sounds[index])

    async def until(self, condition):
        async with asyncio.timeout(30):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def stepping(name="stepping", caches=None, **setup):
    options = {"step_s": 0.002, **setup.pop("options", {})}
    return Synthesizer(
        workers=1, nice=0, setup=Setup(name, FACTORY, slots=4, options=options, **setup), caches=caches or Levels()
    )


@pytest.fixture(scope="module", autouse=True)
def fakes_on_the_path():
    with pytest.MonkeyPatch.context() as patch:
        tests = os.path.dirname(os.path.dirname(__file__))
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")])))
        yield


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def both():
    caches = Levels(64 * 2**20)
    synthesis = Synthesis([Synthesizer(workers=1, nice=0, caches=caches), stepping(caches=caches)], caches)
    await synthesis.start()
    assert synthesis.voices == ()
    await synthesis.wait_ready()
    yield synthesis
    await synthesis.close()


def segments(*texts):
    bounds = [Boundary.START, *[Boundary.SENTENCE] * (len(texts) - 1), Boundary.END]
    return [Segment(n, text, 0, len(text), bounds[n], bounds[n + 1]) for n, text in enumerate(texts)]


def speak(synthesis, style, *texts, listener=None):
    listener, utterance = listener or Listener(), next(ids)
    synthesis.open(utterance, style, listener)
    for segment in segments(*texts):
        synthesis.speak(utterance, segment)
    return utterance, listener


async def test_the_voices_of_all_engines_are_there_in_the_order_of_the_engines(both):
    assert both.ready
    assert [(voice.id, voice.engine) for voice in both.voices] == [("heart", "hibari"), ("tone", "stepping")]
    assert both.info_of("tone").revision == "1"
    assert both.engine_of("heart") is both.engines["hibari"]


async def test_each_utterance_is_spoken_by_the_engine_of_its_voice(both):
    one, heart = speak(both, HEART, "Good morning.")
    two, tone = speak(both, TONE, "Good morning.")
    await heart.until(lambda: heart.whole)
    await tone.until(lambda: tone.whole)

    assert np.array_equal(tone.pcm(0), sound(segments("Good morning.")[0], TONE))
    assert not np.array_equal(heart.pcm(0), tone.pcm(0))
    for utterance in (one, two):
        both.close_utterance(utterance)


async def test_a_stepwise_voice_is_heard_before_its_segment_is_whole(both):
    utterance, listener = speak(both, TONE, "This one is heard in many parts.")
    await listener.until(lambda: listener.sounds)
    assert listener.whole == []
    await listener.until(lambda: listener.whole)

    assert len(listener.sounds[0]) > 3
    both.close_utterance(utterance)


async def test_only_what_is_whole_is_remembered_and_as_a_whole(both):
    cut, listener = speak(both, TONE, f"Cut short {LONG}")
    await listener.until(lambda: listener.sounds)
    both.close_utterance(cut)
    await asyncio.sleep(0)
    assert not both.is_cached(segments(f"Cut short {LONG}")[0], TONE)

    first, whole = speak(both, TONE, "Said twice.")
    await whole.until(lambda: whole.whole)
    assert both.is_cached(segments("Said twice.")[0], TONE)
    assert not both.is_cached(segments("Said twice.")[0], HEART)
    computed = both.engines["stepping"].audio_s
    again, later = speak(both, TONE, "Said twice.")
    await later.until(lambda: later.whole)

    assert len(later.sounds[0]) == 1
    assert np.array_equal(later.pcm(0), whole.pcm(0))
    assert both.engines["stepping"].audio_s == computed
    for utterance in (first, again):
        both.close_utterance(utterance)


async def test_a_new_segment_joins_those_in_mid_stream(both):
    running = [speak(both, TONE, f"{number} {LONG}") for number in range(3)]
    for _, listener in running:
        await listener.until(lambda listener=listener: listener.sounds)

    newcomer, heard = speak(both, TONE, "And one more.")
    await heard.until(lambda: heard.whole)

    assert all(listener.whole == [] for _, listener in running)
    for utterance, _ in [*running, (newcomer, heard)]:
        both.close_utterance(utterance)


async def test_a_cancelled_utterance_makes_room_at_once_and_is_heard_no_more(both):
    running = [speak(both, TONE, f"{number} {LONG}", LONG) for number in range(20, 29)]
    for _, listener in running[:4]:
        await listener.until(lambda listener=listener: listener.sounds)
    for utterance, _ in running:
        both.close_utterance(utterance)
    heard = [sum(map(len, listener.sounds.values())) for _, listener in running]

    after, listener = speak(both, TONE, "Now there is room.")
    await listener.until(lambda: listener.whole)

    assert [sum(map(len, each.sounds.values())) for _, each in running] == heard
    assert both.backlog == 0
    both.close_utterance(after)


async def test_a_listener_with_audio_in_hand_is_not_computed_for_in_mid_segment(both):
    utterance, listener = speak(both, TONE, LONG)
    await listener.until(lambda: listener.sounds)
    both.cover(utterance, 1e12)
    probe, heard = speak(both, TONE, " ".join(["measure"] * 8))
    await heard.until(lambda: heard.whole)  # some hundred steps, of the first one too if it were in them
    before = len(listener.sounds[0])
    other, more = speak(both, TONE, " ".join(["again"] * 9))
    await more.until(lambda: more.whole)

    assert len(listener.sounds[0]) == before
    both.cover(utterance, 0.0)
    await listener.until(lambda: len(listener.sounds[0]) > before)
    for each in (utterance, probe, other):
        both.close_utterance(each)


async def test_a_held_utterance_stops_in_mid_segment_and_goes_on(both):
    utterance, listener = speak(both, TONE, "To be held in the middle of it, for a while.")
    await listener.until(lambda: listener.sounds)
    both.hold(utterance)
    other, more = speak(both, TONE, " ".join(["elsewhere"] * 9))
    await more.until(lambda: more.whole)
    assert listener.whole == []

    both.release(utterance)
    await listener.until(lambda: listener.whole)
    assert np.array_equal(listener.pcm(0), sound(segments("To be held in the middle of it, for a while.")[0], TONE))
    for each in (utterance, other):
        both.close_utterance(each)


async def test_a_text_that_fails_in_mid_stream_ends_its_utterance_only(both):
    failing, listener = speak(both, TONE, "this is unsayable", "and this is never reached")
    other, fine = speak(both, TONE, "Mine goes on.")
    await listener.until(lambda: listener.failures)
    await fine.until(lambda: fine.whole)

    assert listener.failures == ["it came out empty"]
    assert fine.failures == []
    for each in (failing, other):
        both.close_utterance(each)


async def test_the_forecast_of_one_engine_says_nothing_of_the_other(both):
    running = [speak(both, TONE, f"{number} {LONG}") for number in range(40, 50)]
    now = asyncio.get_running_loop().time()

    assert both.predicted_wait("stepping", 10, now) > 0.0
    assert both.predicted_wait("hibari", 10, now) < 0.02
    for utterance, _ in running:
        both.close_utterance(utterance)
    assert both.predicted_wait("stepping", 10, now) == 0.0


async def test_a_worker_that_dies_in_mid_step_fails_its_utterances_and_nobody_elses(both):
    _, crashing = speak(both, TONE, "Then came the crash.")
    _, beside = speak(both, TONE, f"Beside it {LONG}")
    other, heart = speak(both, HEART, "A sentence that is spoken by the other engine.")
    await crashing.until(lambda: crashing.failures)
    await beside.until(lambda: beside.failures)
    await heart.until(lambda: heart.whole)

    assert crashing.failures == beside.failures == ["the engine worker died"]
    assert both.ready
    assert both.engines["stepping"].predicted_wait(10, 0.0) > 0.5
    after, again = speak(both, TONE, "And on.")
    await again.until(lambda: again.whole)
    assert both.engines["stepping"].restarts == 1
    for each in (other, after):
        both.close_utterance(each)


async def test_a_worker_that_hangs_in_mid_step_is_killed_and_replaced():
    broken = []
    alone = Synthesizer(
        workers=1, nice=0, setup=Setup("stepping", FACTORY), job_deadline_s=1.5, on_broken=broken.append
    )
    synthesis = Synthesis([alone])
    await synthesis.start()
    await synthesis.wait_ready()
    _, listener = speak(synthesis, TONE, "Then it would hang.")
    await listener.until(lambda: listener.failures)
    assert broken == ["stepping"]

    _, again = speak(synthesis, TONE, "And on.")
    await again.until(lambda: again.whole)
    await synthesis.close()


async def test_a_narrow_batch_takes_less_and_a_new_worker_is_told_so(both):
    engine = both.engines["stepping"]
    engine.narrow(1)
    victim = engine.worker_pids
    os.kill(victim[0], signal.SIGKILL)
    await eventually("a new worker", lambda: engine.worker_pids not in ((), victim))
    running = [speak(both, TONE, f"{number} one two three four five six seven") for number in range(60, 64)]
    widths = set()
    for _, listener in running:
        while not listener.whole:
            count = sum(map(len, listener.sounds.values()))
            await listener.until(lambda each=listener, count=count: sum(map(len, each.sounds.values())) > count)
            widths.add(engine.batch_width)
    assert widths <= {0, 1}

    engine.narrow(4)
    wide = [speak(both, TONE, f"{number} {LONG}") for number in range(70, 74)]
    await asyncio.gather(*(listener.until(lambda each=listener: each.sounds) for _, listener in wide))
    assert all(not listener.whole for _, listener in wide)
    for utterance, _ in [*running, *wide]:
        both.close_utterance(utterance)


async def test_what_a_pool_has_to_spare_is_known():
    synthesis = Synthesis([stepping(options={"pool_bytes": 4000, "step_s": 0.001})])
    await synthesis.start()
    await synthesis.wait_ready()
    engine = synthesis.engines["stepping"]
    assert engine.idle_pool_bytes == 4000

    utterance, listener = speak(synthesis, TONE, LONG)
    await eventually("a slot is used", lambda: engine.idle_pool_bytes == 3000)
    await listener.until(lambda: listener.sounds)
    synthesis.close_utterance(utterance)
    await eventually("all are idle", lambda: engine.idle_pool_bytes == 4000)
    await synthesis.close()


async def test_a_voice_that_two_engines_have_is_refused_by_name():
    synthesis = Synthesis([stepping("one"), stepping("two", options={"voices": ["other", "tone"]})])
    await synthesis.start()
    with pytest.raises(VoiceClaimed, match="one and two both have a voice 'tone'"):
        await synthesis.wait_ready()

    assert not synthesis.ready
    await synthesis.close()


async def test_an_engine_that_cannot_be_loaded_says_why():
    synthesis = Synthesis([stepping(), Synthesizer(workers=1, setup=Setup("bad", "fakes.stepping:fail"))])
    await synthesis.start()
    with pytest.raises(WorkersUnavailable, match=r"bad.*no weights here"):
        await synthesis.wait_ready()

    await synthesis.close()


async def test_what_is_said_to_an_unknown_utterance_is_ignored(both):
    both.speak(10**9, segments("Hello.")[0])
    both.cover(10**9, 0.0)
    both.hold(10**9)
    both.release(10**9)
    both.close_utterance(10**9)
    with pytest.raises(KeyError):
        both.open(next(ids), Style("nobody"), Listener())

    assert both.backlog == 0
