"""What travels through synthesis: a segment, the boundaries it lies between, and what an engine is asked for."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

Urls = Literal["short", "drop", "spell"]


class Boundary(Enum):
    """What separates two segments, or a segment from silence; it decides the pause (synth/joins.py)."""

    START = "start"  # the first segment of an utterance: leading silence is latency
    CLAUSE = "clause"  # a cut inside a sentence, at , ; : or a dash
    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"  # a blank line
    FORCED = "forced"  # a cut at a space because the text was too long, or the writer too slow
    END = "end"  # nothing is known to follow


class MarkKind(Enum):
    ALIAS = "alias"  # speak `value` instead
    PHONEMES = "phonemes"  # speak it as `value` says, in IPA; engines without phonemes speak it as it is written
    SAY_AS = "say-as"  # read it as `value` says: "characters", "digits", "telephone", "cardinal", "ordinal"


@dataclass(frozen=True, slots=True)
class Mark:
    """How `text[start:end]` of a segment is to be spoken, by the client's markup or the operator's lexicon."""

    start: int
    end: int
    kind: MarkKind
    value: str


@dataclass(frozen=True, slots=True)
class Segment:
    """The text between two cuts: the unit an engine is given.

    `start` and `end` are code-point offsets in the text of the context as the client sent it; `text` has exactly
    `end - start` code points (what cannot be spoken is blanked by spaces, never removed), so offsets inside `text`
    are offsets in the source. `lead_in` is the part of the same sentence that comes before `text` in the segment
    before, given to the engine so that it can speak a continuation as one (empty after a sentence end). `pause_s` is
    the silence the text asks for before it: its boundary's pause is at least so long. `marks` are in order and do not
    overlap. Engines speak `text` after synth/text/normalize.
    """

    index: int  # 0, 1, 2, … in the context
    text: str
    start: int
    end: int
    before: Boundary
    after: Boundary
    lead_in: str = ""
    pause_s: float = 0.0  # at any speed
    marks: tuple[Mark, ...] = ()


def without_margins(segment: Segment) -> Segment:
    """`segment` as an engine is given it: white space around it, of which there may be any amount, makes no sound."""
    text = segment.text.strip()
    lead = len(segment.text) - len(segment.text.lstrip())
    marks = tuple(replace(mark, start=mark.start - lead, end=mark.end - lead) for mark in segment.marks)
    start = segment.start + lead
    end = start + len(text)
    return replace(segment, text=text, start=start, end=end, lead_in=segment.lead_in.strip(), marks=marks)


@dataclass(frozen=True, slots=True)
class Style:
    """How a context sounds: fixed at its start and the same for all of its segments."""

    voice: str
    speed: float = 1.0
    seed: int = 0
    urls: Urls = "short"  # what is said of web and mail addresses
