import pytest

from voxgate.synth.engine import EngineInfo, Voice
from voxgate.synth.messages import (
    MAX_REQUEST_BYTES,
    PREFIX,
    BadMessage,
    Failed,
    Ready,
    Spoken,
    Synthesize,
    decode_reply,
    decode_request,
    encode,
    payload_length,
)
from voxgate.synth.segment import Boundary, Segment, Style, without_margins
from voxgate.synth.text.lexicon import Lexicon, Word
from voxgate.synth.text.limits import VALUE_CODE_POINTS
from voxgate.synth.text.segmenter import Segmenter

VOICE = Voice("heart", "en-US", "hibari", "realtime", 24000)
INFO = EngineInfo("hibari", "1", 24000, (VOICE,), max_slots=1, stepwise=False, deterministic=True)


def test_a_request_arrives_as_it_was_sent():
    segment = Segment(3, "naïve — 你好", 10, 20, Boundary.CLAUSE, Boundary.END, "Well, ")
    request = Synthesize(7, segment, Style("heart", 1.5, 42))

    data = encode(request)

    assert payload_length(data[: PREFIX.size], MAX_REQUEST_BYTES) == len(data) - PREFIX.size
    assert decode_request(data[PREFIX.size :]) == request


def longest(before: str, word: str, text: str) -> list[Segment]:
    """The segments of a text in which a lexicon has something long to say for every word."""
    say = "𝒶" * VALUE_CODE_POINTS  # four bytes each
    lexicon = Lexicon((Word(text=word, say=say),))
    segmenter = Segmenter()
    segments = segmenter.push(before + text) + segmenter.end()
    return [lexicon.apply(segment, "heart", "en-US") for segment in segments]


@pytest.mark.parametrize("before", ["", " " * 20_000, "*" * 20_000])
@pytest.mark.parametrize("word", ["a", "é", "1"])
@pytest.mark.parametrize("between", [" ", "_", "-", ".", "\n"])
def test_no_segment_that_can_be_cut_is_over_the_limit_of_a_request(before: str, word: str, between: str):
    segments = longest(before, word, (word + between) * 2000)

    sizes = [len(encode(Synthesize(2**63, without_margins(each), Style("v" * 64, 1.5, 2**63)))) for each in segments]

    assert max(sizes) <= MAX_REQUEST_BYTES


@pytest.mark.parametrize("reply", [Ready(INFO), Spoken(1, b"\x01\x00", 0.01, times=b"t"), Failed(1, "why")])
def test_a_reply_arrives_as_it_was_sent(reply):
    assert decode_reply(encode(reply)[PREFIX.size :]) == reply


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x90", b"\x93\xa5ready\x01\x02", encode(Ready(INFO))])
def test_what_cannot_be_read_is_a_bad_message(payload):
    with pytest.raises(BadMessage):
        decode_reply(payload)
    with pytest.raises(BadMessage):
        decode_request(payload)


def test_a_length_over_the_limit_is_a_bad_message():
    with pytest.raises(BadMessage, match="over the limit"):
        payload_length(PREFIX.pack(MAX_REQUEST_BYTES + 1), MAX_REQUEST_BYTES)
