"""What a piece of speech is called in the caches: a hash of everything that shapes its samples, and of nothing else.

Of the text, what comes out of the segmenter (blanked, cut, marked) is hashed, so another segmenter, filter or lexicon
gives other keys by itself; the normalizer has its revision, voices and joins are covered by their engine's. Where a
segment stands in its context is left out, and so is the amount of white space: neither may change the sound (see
`SegmentEngine.synthesize`).
"""

import hashlib

import msgspec

from ..engine import EngineInfo
from ..segment import Segment, Style
from ..text.normalize.normalizer import REVISION as NORMALIZER

REVISION = 2  # of this encoding and of whatever else is done to the samples between the engine and the caches
KEY_BYTES = 16

_encoder = msgspec.msgpack.Encoder()


def key_of(info: EngineInfo, style: Style, segment: Segment) -> bytes:
    """16 bytes; takes 6 µs."""
    shape = (
        REVISION,
        NORMALIZER,
        info.name,
        info.revision,
        info.sample_rate,
        style.voice,
        float(style.speed),
        str(style.seed),  # any integer is a seed, MessagePack ends at 64 bits
        style.urls,
        segment.before.value,
        segment.after.value,
        " ".join(segment.lead_in.split()),
        *_text(segment),
        float(segment.pause_s),
    )
    return hashlib.blake2b(_encoder.encode(shape), digest_size=KEY_BYTES).digest()


def _text(segment: Segment) -> tuple[str, list[tuple[int, int, str, str]]]:
    """The words with one space between them, and the marks at their places in that."""
    if not segment.marks:
        return " ".join(segment.text.split()), []

    def place(at: int) -> int:
        return len(" ".join(f"{segment.text[:at]}|".split())) - 1

    marks = [(place(mark.start), place(mark.end), mark.kind.value, mark.value) for mark in segment.marks]
    return " ".join(segment.text.split()), marks
