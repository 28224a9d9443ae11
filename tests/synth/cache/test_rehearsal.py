import os
import signal

import pytest
import pytest_asyncio

from voxgate.synth.cache.levels import Levels
from voxgate.synth.cache.phrases import Phrase, PhrasesError
from voxgate.synth.cache.rehearsal import rehearse
from voxgate.synth.synthesis import Synthesis
from voxgate.synth.synthesizer import Synthesizer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def synthesizer():
    caches = Levels()
    synthesizer = Synthesis([Synthesizer(workers=1, nice=0, caches=caches)], caches)
    await synthesizer.start()
    await synthesizer.wait_ready()
    yield synthesizer
    await synthesizer.close()


async def test_every_phrase_is_spoken_once_and_kept(synthesizer):
    await rehearse(synthesizer, [Phrase(text="Good morning."), Phrase(text="Good morning.", speed=1.5)])
    computed, pinned = synthesizer.engines["hibari"].compute_s, synthesizer.caches.pinned_bytes
    await rehearse(synthesizer, [Phrase(text="Good morning.")])

    assert synthesizer.caches.unspoken == []
    assert pinned > 8 * 0.5 * 48_000  # both speeds, four places each
    assert (synthesizer.engines["hibari"].compute_s, synthesizer.caches.pinned_bytes) == (computed, pinned)
    assert synthesizer.backlog == 0


async def test_a_worker_that_dies_meanwhile_is_made_up_for(synthesizer):
    def phrases():
        os.kill(synthesizer.engines["hibari"].worker_pids[0], signal.SIGKILL)
        yield from (Phrase(text=f"This is number {number}.") for number in range(3))

    await rehearse(synthesizer, phrases())

    assert synthesizer.caches.unspoken == []
    assert synthesizer.engines["hibari"].restarts == 1


@pytest.mark.parametrize(
    ("phrase", "named"),
    [(Phrase(text="Yes.", voice="nobody"), "no voice 'nobody'"), (Phrase(text="Привет."), "cannot speak .*Привет")],
)
async def test_a_phrase_that_no_voice_can_speak_is_named(synthesizer, phrase, named):
    with pytest.raises(PhrasesError, match=named):
        await rehearse(synthesizer, [phrase])
