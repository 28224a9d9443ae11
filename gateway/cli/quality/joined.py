"""Whether joins can be heard: a thousand of them of every kind, as a listener of a server gets them.

    fresh       sentences, clauses, paragraphs and forced cuts, spoken by the engine
    remembered  the same again, out of the cache, and between sentences that are new
    phrases     sentences of the phrase pool between others
    resumed     an answer cut off by a cancel, and the next one behind it

What is cut off ends as a player ends it, the bundled page among them: within 5 ms. The control ends at
60 % of its peak or more, without a fade, which the measure has to find.
"""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ....client import Audio, Cancelled, Connection, connect
from ....codecs.packetizer import Format, StreamDecoder
from ....codecs.pcm import to_float
from ....synth import joins as fades
from ..bench import Figure, server
from .clicks import Sound, judge
from .sentences import sentences
from .speaking import LEAD_MS, Bare, hear, hear_all

PHRASES = ("One moment, please.", "I am looking that up for you.", "Is there anything else?", "Good morning!")
LONG = "and then they went on along the river past the mill and the old church until they came to the bridge "
CONTROL = 100
LOUD = 0.6  # of the peak
GAP = 2400  # samples
PROMISED_FOUND = 80.0  # percent of the control


async def measure(count: int) -> list[Figure]:
    bare = Bare()
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        phrases = Path(folder) / "phrases.toml"
        phrases.write_text("".join(f'[[phrase]]\ntext = "{phrase}"\n' for phrase in PHRASES))
        async with server("--phrases", str(phrases)) as (url, _), connect(url) as connection:
            fresh = await _spoken(connection, bare, _texts(chance), count // 2)
            again = await _spoken(connection, bare, _repeated(chance), count // 6)
            pooled = await _spoken(connection, bare, _with_phrases(chance), count // 6)
            enough = count - sum(len(each.joins) for group in (fresh, again, pooled) for each in group)
            resumed = [await _resumed(connection, bare.rate, chance) for _ in range(max(enough, count // 6))]
    everything = [*fresh, *again, *pooled, *resumed]
    verdict = judge(everything, bare.rate)
    control = judge(everything + [_spoiled(each, chance) for each in fresh[:CONTROL]], bare.rate)
    spoiled = control.joins - verdict.joins
    found = max(control.clicks_by_flux - verdict.clicks_by_flux, control.clicks_by_step - verdict.clicks_by_step)
    return [
        *(
            Figure(f"joins, {name}", sum(len(each.joins) for each in group), "")
            for name, group in (("fresh", fresh), ("remembered", again), ("phrases", pooled), ("resumed", resumed))
        ),
        Figure(f"steps over the threshold, {verdict.joins} joins", verdict.clicks_by_step, "", 0, "none"),
        Figure("largest step over the threshold", verdict.worst_step, "x"),
        Figure("spectral flux over the threshold", verdict.clicks_by_flux, "", 0, "none"),
        Figure("largest flux over the threshold", verdict.worst_flux, "x"),
        Figure(
            "spoiled joins that were missed", 100 - 100 * found / max(spoiled, 1), "%", 100 - PROMISED_FOUND, "control"
        ),
    ]


def _texts(chance: random.Random) -> Iterator[str]:
    """A few sentences each, no longer than a minute's half."""
    plain = [sentence for sentence in sentences(3000) if 20 < len(sentence) < 110]
    for at in range(0, len(plain) - 3, 3):
        first, second, third = plain[at : at + 3]
        yield first + chance.choice((" ", "\n\n", "\n")) + second + " " + chance.choice((third, f"{third} {LONG}."))


def _repeated(chance: random.Random) -> Iterator[str]:
    texts = _texts(random.Random(1))
    for text in texts:
        yield text
        yield f"{text} {chance.choice(PHRASES[1:3])} {text.split('. ')[0]}."


def _with_phrases(chance: random.Random) -> Iterator[str]:
    for sentence in sentences(2000, seed=7):
        if len(sentence) < 100:
            yield f"{chance.choice(PHRASES)} {sentence} {chance.choice(PHRASES)}"


async def _spoken(connection: Connection, bare: Bare, texts: Iterator[str], joins: int) -> list[Sound]:
    """As many as have so many joins. Where they are is known from the engine: the samples are the same."""
    sounds: list[Sound] = []
    while joins > 0:
        takes = {text: bare.speak(text) for text in (next(texts) for _ in range(8))}
        heard = await hear_all(connection, list(takes), "pcm_s16le")
        for take, pcm in zip(takes.values(), heard, strict=True):
            if len(pcm) != len(take.pcm):
                raise OSError(f"the server made {len(pcm)} samples of a text, the engine {len(take.pcm)}")
            sounds.append(Sound(pcm, take.joins))
            joins -= len(take.joins)
    return sounds


async def _resumed(connection: Connection, rate: int, chance: random.Random) -> Sound:
    """An answer that was cut off somewhere, what a player makes of its end, and the next answer."""
    context = await connection.start(codec="pcm_s16le", lead_ms=LEAD_MS, max_wait_ms=30_000)
    await context.send(f"Well, {chance.choice(PHRASES)} {LONG}, {LONG}.")
    await context.end()
    payloads: list[bytes] = []
    heard = 0
    async for event in context:
        if isinstance(event, Audio):
            payloads.append(event.payload)
            if len(payloads) == 1:
                await context.cancel(played=chance.randrange(1, len(event.payload) // 2))
        elif isinstance(event, Cancelled):
            heard = event.heard
    assert context.started is not None
    decoder = StreamDecoder(Format("pcm_s16le", rate, context.started.frame_samples, 0))
    first = np.concatenate([decoder.push(payload) for payload in payloads])[:heard]
    cut = to_float(first)
    fades.fade_out(cut, rate)
    following = await hear(connection, f"{chance.choice(PHRASES)} Now, where were we?", "pcm_s16le")
    pcm = np.concatenate([fades.to_int16(cut), following])
    return Sound(pcm, (len(cut),))


def _spoiled(sound: Sound, chance: random.Random) -> Sound:
    """Cut off where it is loud, with silence behind it and no fade."""
    sizes = np.abs(sound.pcm.astype(np.int32))
    loud = np.flatnonzero(sizes >= LOUD * sizes.max())
    at = int(chance.choice(loud.tolist()))
    return Sound(np.concatenate([sound.pcm[:at], np.zeros(GAP, np.int16)]), (at,))
