"""What codecs do to the voice: whether a context comes out as long as it went in, and PESQ of every setting.

PESQ (ITU-T P.862, wide-band P.862.2) needs the package `pesq`, which has to be compiled; without it there are no such
figures. It compares at 16 kHz, at 8 kHz for telephone codecs, and is not made for judging music or MP3.
"""

import random
import statistics
from collections.abc import Iterator

import numpy as np

from ....codecs.packetizer import (
    FRAME_MS,
    SAMPLE_RATES,
    WIRE_CODECS,
    Format,
    Packetizer,
    StreamDecoder,
    choose_format,
    pack_audio,
)
from ....codecs.resample import Resampler, resampled_length
from ..bench import Figure
from .sentences import sentences
from .speaking import Bare, Pcm

LENGTHS = 0, 1, 7, 479, 480, 481, 4800, 24_000, 37_123  # samples at the voice's rate
PUSHES = 100, 480, 12_345, 100_000
SENTENCES = 8
# Telephone at 8 kHz narrow-band; the rest wide-band. Promised is what was measured, less 0.1 for another libopus.
PESQ: tuple[tuple[str, int, bool, float | None], ...] = (
    ("pcm_s16le", 24000, False, 4.5),
    ("opus", 8000, False, None),
    ("opus", 16000, False, None),
    ("opus", 24000, False, 4.1),
    ("opus", 24000, True, 3.6),
    ("opus", 48000, False, 4.1),
    ("ogg_opus", 24000, False, 4.1),
    ("mp3", 24000, False, None),
    ("mulaw", 8000, False, None),
    ("alaw", 8000, False, None),
)


async def lengths(count: int) -> list[Figure]:
    """Every codec, rate and frame length there is, each with so many lengths, the last of them by chance."""
    checked = wrong = 0
    chance = random.Random(3)
    for form in _forms(24_000):
        for samples in (*LENGTHS[: count - 1], chance.randrange(1, 50_000)):
            pcm = np.asarray(np.random.default_rng(samples).normal(0, 3000, samples), np.int16)
            checked += 1
            wrong += len(round_trip(pcm, form, 24_000, chance.choice(PUSHES))) != resampled_length(
                samples, 24_000, form.sample_rate
            )
    return [Figure(f"decoded lengths that differ, {checked} streams", wrong, "", 0, "none, to the sample")]


async def pesq(count: int) -> list[Figure]:
    """Means over a few sentences; nothing without the package."""
    try:
        from pesq import pesq as score  # pyright: ignore[reportMissingImports]
    except ImportError:
        return []
    bare = Bare()
    spoken = [bare.speak(text).pcm for text in list(sentences(60))[-SENTENCES:]]
    figures: list[Figure] = []
    for codec, rate, economy, promised in PESQ:
        form = choose_format(codec, rate, 20, bare.rate, economy=economy)
        at, mode = (8000, "nb") if form.sample_rate == 8000 else (16000, "wb")
        scores = [
            score(
                at,
                resampled(pcm, bare.rate, at),
                resampled(round_trip(pcm, form, bare.rate), form.sample_rate, at),
                mode,
            )
            for pcm in spoken
        ]
        name = f"PESQ {mode}, {codec} {form.sample_rate} Hz{', economical' if economy else ''}, loss to 4.64"
        loss = max(0.0, 4.64 - statistics.mean(scores))
        figures.append(Figure(name, loss, "", None if promised is None else 4.64 - promised, f"PESQ {promised}"))
    return figures


def round_trip(pcm: Pcm, form: Format, rate: int, push: int | None = None) -> Pcm:
    """What a decoder makes of it, trimmed as the wire says."""
    packetizer, decoder = Packetizer(form, rate), StreamDecoder(form)
    step = push or max(len(pcm), 1)
    payloads = [pack_audio(form, packetizer.push(pcm[at : at + step])) for at in range(0, len(pcm), step)]
    payloads.append(pack_audio(form, packetizer.finish()))
    return np.concatenate([*(decoder.push(payload) for payload in payloads), decoder.finish(packetizer.samples)])


def resampled(pcm: Pcm, rate: int, to: int) -> Pcm:
    if rate == to:
        return pcm
    resampler = Resampler(rate, to)
    return np.concatenate([resampler.push(pcm), resampler.finish()])


def _forms(source_rate: int) -> Iterator[Format]:
    """Those on the wire that differ."""
    seen: set[Format] = set()
    for codec in WIRE_CODECS:
        for rate in SAMPLE_RATES:
            for frame_ms in FRAME_MS:
                form = choose_format(codec, rate, frame_ms, source_rate)
                if form not in seen:
                    seen.add(form)
                    yield form
