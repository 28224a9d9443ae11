"""Which hidden states a window of speech is made of, and which samples of what comes out are its own.

Pure arithmetic over step numbers. A window is decoded with `context` steps before it and all that is known behind it,
up to `context`; at the ends of a speech the whole decode has nothing there either.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .shape import Shape


@dataclass(frozen=True, slots=True)
class Span:
    """Steps `start` to `start + steps` of the speech in `slot`; of their sound the samples `first` to `last`."""

    slot: int
    start: int
    steps: int
    first: int
    last: int


def span(shape: Shape, slot: int, begin: int, end: int, known: int, *, last: bool) -> Span:
    """For the steps `begin` to `end`, when all before `known` have been computed; `last`: the speech ends with them."""
    start = max(0, begin - shape.context_steps)
    stop = min(known, end + shape.context_steps)
    samples = shape.samples_per_step
    # The inverse STFT is centred on its frames: a speech has half a step less of sound than it has steps.
    stop_at = (end - start) * samples - (shape.hop if last else 0)
    return Span(slot, start, stop - start, (begin - start) * samples, stop_at)


def batches(spans: Sequence[Span], most_rows: int) -> list[list[int]]:
    """Which of `spans` to decode together, by index: of like length, because the longest one decides what it costs."""
    order = sorted(range(len(spans)), key=lambda n: spans[n].steps)
    return [order[n : n + most_rows] for n in range(0, len(order), most_rows)]


def bucket(size: int, buckets: Sequence[int]) -> int:
    """The smallest of `buckets` that holds `size`. Raises `ValueError`."""
    for each in buckets:
        if each >= size:
            return each
    raise ValueError(f"{size} is over the largest of {list(buckets)}")
