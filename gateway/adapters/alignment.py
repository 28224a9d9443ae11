"""When each character is spoken, as ElevenLabs tells it, from when each word is.

Two clocks are in use: times from the beginning of the context, and times from the beginning of what the message
speaks of, whose reader adds up the spans. Whole milliseconds are cut from the clock of the context, so that the spans
add up to it exactly.
"""

from typing import Any

from ..dialect import Spoken

Times = list[tuple[str, float, float]]  # character, start and end in seconds of the context


def characters(said: Spoken) -> Times:
    """Every character of `said.text` but the spaces around it, then one space up to the end of the audio: what is told
    next is a word of its own. Those of a word share its time, those between words what lies between."""
    times: Times = []
    text = said.text.rstrip()
    at = len(text) - len(text.lstrip())
    edge = said.begin
    for word, start, end, offset in said.words:
        begin = offset - said.start
        times += _spread(text[at:begin], edge, start)
        times += _spread(word, start, end)
        at, edge = begin + len(word), end
    tail = text[at:]
    behind = edge + (said.end - edge) * len(tail) / (len(tail) + 1)
    return [*times, *_spread(tail, edge, behind), (" ", behind, said.end)]


def _spread(text: str, begin: float, end: float) -> Times:
    step = (end - begin) / len(text) if text else 0.0
    return [(character, begin + step * i, begin + step * (i + 1)) for i, character in enumerate(text)]


def milliseconds(said: Spoken, *, absolute: bool) -> dict[str, list[Any]]:
    """The alignment of the WebSocket messages. `absolute`: from the beginning of the context."""
    times = characters(said)
    base = 0 if absolute else _ms(said.begin)
    starts = [_ms(start) - base for _, start, _ in times]
    ends = [*starts[1:], _ms(said.end) - base]
    return {
        "chars": [character for character, _, _ in times],
        "charStartTimesMs": starts,
        "charDurationsMs": [end - start for start, end in zip(starts, ends, strict=True)],
    }


def seconds(said: Spoken) -> dict[str, list[Any]]:
    """The alignment of the HTTP interface, from the beginning of the request."""
    times = characters(said)
    return {
        "characters": [character for character, _, _ in times],
        "character_start_times_seconds": [round(start, 3) for _, start, _ in times],
        "character_end_times_seconds": [round(end, 3) for _, _, end in times],
    }


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
