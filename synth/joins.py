"""Where two segments meet: how much silence stays on either side of a cut, and the fades at its edges.

Pure arithmetic on float32 signals; knows no engine. A whole-segment voice pads every call with silence, so spoken
piece by piece a sentence falls apart. The two sides of a cut are rendered by different processes that know only their
own side, so every boundary fixes what the left side keeps (`tail`) and what the right one keeps (`lead`): the pause is
their sum.

    boundary     tail      lead       pause at speed 1
    START        -         <= 15 ms   latency the listener would hear
    CLAUSE       15 ms     rest       150-250 ms, as in the sentence spoken whole; see `continuation_lead`
    FORCED       5 ms      <= 15 ms   up to 20 ms: the text has none
    SENTENCE     380-460   220-320    600-780 ms: the voice's own, within bounds
    PARAGRAPH    600 ms    400 ms     1000 ms
    END          all       -          trailing silence is prosody

Silence is what stays under -45 dBFS in windows of 5 ms. A cut edge gets a 5 ms fade; nothing else of the signal is
touched, least of all its gain.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .segment import Boundary

SILENCE_DBFS = -45.0
WINDOW_S = 0.005
HOP_S = 0.001
FADE_S = 0.005
EDGE_S = 0.5
_THRESHOLD = 10 ** (SILENCE_DBFS / 20)

CLAUSE_TAIL_S = 0.015
CLAUSE_PAUSE_S = 0.165, 0.240  # 150-250 ms with room for the edges of sounds, where windows disagree
CLAUSE_PAUSE_ALONE_S = 0.170  # when the sentence it stands in is not known
# Of the pause in the sentence spoken whole, as far as that is known: a clause that is still to come can change it. Over
# 539 cuts these two leave the fewest outside 150-250 ms or over 1.3 x what the whole sentence turns out to have.
CLAUSE_SHARE = 0.65
CLAUSE_STRETCH = 1.2
CLAUSE_HORIZON_S = CLAUSE_PAUSE_S[1] / CLAUSE_SHARE  # whole sentences that pause for longer make no difference

Signal = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Silence:
    """How much silence a side keeps, in seconds: more is cut, less is padded."""

    least: float
    most: float
    paced: bool = True  # a pause is part of the pace, so these are seconds at speed 1; latency is not

    def at(self, pace: float) -> "Silence":
        return Silence(self.least / pace, self.most / pace, False) if self.paced else self


def _exactly(seconds: float) -> Silence:
    return Silence(seconds, seconds)


ALL = Silence(0.0, float("inf"))
TAIL: dict[Boundary, Silence] = {
    Boundary.CLAUSE: _exactly(CLAUSE_TAIL_S),
    Boundary.FORCED: _exactly(0.005),
    Boundary.SENTENCE: Silence(0.380, 0.460),
    Boundary.PARAGRAPH: _exactly(0.600),
    Boundary.END: ALL,
}
LEAD: dict[Boundary, Silence] = {
    Boundary.START: Silence(0.0, 0.015, paced=False),
    Boundary.CLAUSE: _exactly(CLAUSE_PAUSE_ALONE_S - CLAUSE_TAIL_S),
    Boundary.FORCED: Silence(0.0, 0.015),
    Boundary.SENTENCE: Silence(0.220, 0.320),
    Boundary.PARAGRAPH: _exactly(0.400),
}


def continuation_lead(before: Boundary, whole_s: float) -> Silence:
    """What the right side of a cut keeps, given the pause at that place in the sentence spoken whole (at speed 1).

    Whole sentences pause for 330 ms at a clause (median); a cut one gets two thirds of it, within 150-250 ms, but never
    over 1.2 times the whole: "Hello, | how can I help" has 62 ms when spoken at once, and 150 would be hesitation.
    """
    if before is not Boundary.CLAUSE:
        return LEAD[before]
    shortest, longest = CLAUSE_PAUSE_S
    pause = min(max(CLAUSE_SHARE * whole_s, shortest), longest, CLAUSE_STRETCH * whole_s)
    return _exactly(max(0.0, pause - CLAUSE_TAIL_S))


def with_pause(lead: Silence, before: Boundary, pause_s: float, pace: float) -> Silence:
    """`lead`, but no less than `pause_s`, at any pace, together with the tail of what was spoken before."""
    if not pause_s or before not in TAIL:
        return lead
    tail, own = TAIL[before].at(pace), lead.at(pace)
    wanted = max(0.0, pause_s - (tail.least + min(tail.most, tail.least + 0.1)) / 2)
    return Silence(max(own.least, wanted), max(own.most, wanted), False)


@dataclass(frozen=True, slots=True)
class Trimmed:
    signal: Signal
    shift: int  # sample n of what was trimmed is sample n + shift now


def trim(signal: Signal, rate: int, lead: Silence, tail: Silence, pace: float = 1.0) -> Signal:
    """`signal` with its silence at both ends brought within `lead` and `tail` at the speaking rate `pace`.

    A signal without anything audible is returned as it is.
    """
    return trimmed(signal, rate, lead, tail, pace).signal


def trimmed(signal: Signal, rate: int, lead: Silence, tail: Silence, pace: float = 1.0) -> Trimmed:
    """`trim`, and where things are now."""
    sound = audible(signal, rate)
    if sound is None:
        return Trimmed(signal, 0)
    first, last = sound
    start, pad_left = _edge(first, lead.at(pace), rate)
    kept_right, pad_right = _edge(len(signal) - last, tail.at(pace), rate)
    stop = len(signal) - kept_right
    out = np.concatenate([np.zeros(pad_left, np.float32), signal[start:stop], np.zeros(pad_right, np.float32)])
    if start or pad_left:
        fade_in(out[pad_left:], rate)
    if kept_right or pad_right:
        fade_out(out[: len(out) - pad_right], rate)
    return Trimmed(out, pad_left - start)


def audible(signal: Signal, rate: int) -> tuple[int, int] | None:
    """First and one-past-last audible sample, to a hop of 1 ms; None when all is silence."""
    hop, window = _samples(HOP_S, rate), _samples(WINDOW_S, rate)
    edge = _samples(EDGE_S, rate) // hop * hop  # it is at the ends that is looked at first: most signals begin there
    late = max(0, (len(signal) - edge) // hop * hop)
    first, last = _loud(signal[: edge + window], rate), _loud(signal[late:], rate)
    if not len(first) or not len(last):
        first, late = (last := _loud(signal, rate)), 0
    if not len(first):
        return None
    return int(first[0]) * hop, min(late + int(last[-1]) * hop + window, len(signal))


def _loud(signal: Signal, rate: int) -> NDArray[np.intp]:
    """The windows in which something is heard."""
    return np.flatnonzero(loudness(signal, rate) > _THRESHOLD)


def pause_within(signal: Signal, rate: int, begin: int, end: int) -> slice:
    """The longest silence that reaches into `signal[begin:end]`, in samples; silence at the start of `signal` counts.

    Where there is none, the empty slice in the middle of the quietest window.
    """
    levels = loudness(signal, rate)
    hop, window = _samples(HOP_S, rate), _samples(WINDOW_S, rate)
    first, last = max(begin // hop, 0), max(min(end // hop, len(levels)), 1)
    loud = np.concatenate([[-window // hop], np.flatnonzero(levels > _THRESHOLD), [len(levels) + window // hop]])
    starts, stops = loud[:-1] * hop + window, loud[1:] * hop
    length = np.where((stops > begin) & (starts < end), stops - starts, 0)
    longest = int(np.argmax(length))
    if length[longest] > 0:
        return slice(max(int(starts[longest]), 0), min(int(stops[longest]), len(signal)))
    quietest = (min(first, last - 1) + int(np.argmin(levels[min(first, last - 1) : last]))) * hop + window // 2
    return slice(quietest, quietest)


def loudness(signal: Signal, rate: int) -> NDArray[np.float64]:
    """RMS of the 5 ms windows that start every millisecond."""
    hop, window = _samples(HOP_S, rate), _samples(WINDOW_S, rate)
    energy = np.concatenate([[0.0], np.cumsum(np.square(signal, dtype=np.float64))])
    starts = np.arange(0, max(len(signal) - window + 1, 1), hop)
    stops = np.minimum(starts + window, len(signal))
    return np.sqrt(np.maximum(energy[stops] - energy[starts], 0.0) / window)


def fade_in(signal: Signal, rate: int) -> None:
    """Ramp the first 5 ms up, in place."""
    length = min(_samples(FADE_S, rate), len(signal))
    signal[:length] *= _ramp(length)


def fade_out(signal: Signal, rate: int) -> None:
    """Ramp the last 5 ms down, in place."""
    length = min(_samples(FADE_S, rate), len(signal))
    signal[len(signal) - length :] *= _ramp(length)[::-1]


def to_int16(signal: Signal) -> NDArray[np.int16]:
    return np.rint(np.clip(signal, -1.0, 1.0) * 32767.0).astype(np.int16)


def _edge(silent: int, wanted: Silence, rate: int) -> tuple[int, int]:
    """(samples to cut, samples to pad) at an end with `silent` samples of silence."""
    cut = max(0, silent - int(min(wanted.most * rate, silent)))
    pad = max(0, _samples(wanted.least, rate) - silent)
    return cut, pad


def _ramp(length: int) -> Signal:
    """Raised cosine from 0 to 1, both ends excluded."""
    return (0.5 - 0.5 * np.cos(np.pi * (np.arange(length) + 0.5) / max(length, 1))).astype(np.float32)


def _samples(seconds: float, rate: int) -> int:
    return round(seconds * rate)
