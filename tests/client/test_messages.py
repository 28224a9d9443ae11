import json

import pytest

from voxgate.client import messages
from voxgate.client.errors import ProtocolError
from voxgate.client.messages import Audio, Cancel, Error, Start, VoiceInfo, Word, Words


def said(message) -> dict:
    return json.loads(messages.encode(message))


def audio(payload: bytes) -> Audio:
    return Audio(1, 0, 0, payload, True, 0.0)


def test_what_is_not_set_is_not_said():
    assert said(Start("c1", voice="heart", seed=0)) == {"type": "start", "context": "c1", "voice": "heart", "seed": 0}
    assert said(Cancel("c1")) == {"type": "cancel", "context": "c1"}


def test_words_are_parsed_with_their_offsets():
    wire = b'{"type":"words","context":"c1","words":[["Hello,",0.03,0.41,0]],"estimated":true}'

    assert messages.decode(wire) == Words("c1", (Word("Hello,", 0.03, 0.41, 0),), estimated=True)


def test_unknown_fields_are_ignored():
    wire = b'{"type":"ready","protocol":"voxgate.v1","voices":[{"id":"x","mood":1}],"limits":{"contexts":8},"new":[]}'

    ready = messages.decode(wire)

    assert isinstance(ready, messages.Ready)
    assert (ready.voices, ready.limits) == ((VoiceInfo("x"),), {"contexts": 8})


def test_an_error_that_ends_no_context_names_whom_it_is_about():
    wire = b'{"type":"error","context":null,"about":"c1","code":"bad_message","message":"?"}'

    assert messages.decode(wire) == Error("bad_message", None, "c1", "?")


def test_an_unknown_type_is_no_message():
    assert messages.decode(b'{"type":"weather","context":"c1"}') is None


@pytest.mark.parametrize(
    "wire", [b"{", b"[]", b"{}", b'{"type":"done"}', b'{"type":"done","context":"c1","samples":"9"}']
)
def test_a_malformed_message_is_a_protocol_error(wire):
    with pytest.raises(ProtocolError):
        messages.decode(wire)


def test_the_header_of_audio_is_parsed():
    data = bytes.fromhex("01 01 0003 00000007 0000000100000000") + b"sound"

    assert messages.decode_audio(data, 4.5) == Audio(3, 7, 1 << 32, b"sound", True, 4.5)


@pytest.mark.parametrize("data", [b"", b"\1" * 15, b"\2" + b"\0" * 15])
def test_audio_without_our_header_is_a_protocol_error(data):
    with pytest.raises(ProtocolError):
        messages.decode_audio(data, 0.0)


def test_a_payload_is_split_into_its_packets():
    assert audio(b"\0\3one\0\0\0\5three").packets() == [b"one", b"", b"three"]
    assert audio(b"\0\3one\0\0\0\5three").packet_count() == 3


@pytest.mark.parametrize("payload", [b"\0", b"\0\3on", b"\0\3one\0"])
def test_a_payload_that_ends_inside_a_packet_is_a_protocol_error(payload):
    with pytest.raises(ProtocolError):
        audio(payload).packets()
    with pytest.raises(ProtocolError):
        audio(payload).packet_count()
