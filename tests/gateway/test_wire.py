import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.gateway import wire


def test_start_has_the_documented_defaults():
    assert wire.parse('{"type":"start","context":"c1"}') == wire.Start(
        context="c1",
        voice=None,
        codec=None,
        sample_rate=None,
        speed=None,
        frame_ms=20,
        timestamps=False,
        lead_ms=2000,
        tier="auto",
        seed=0,
        max_wait_ms=200,
    )


@pytest.mark.parametrize(
    ("message", "parsed"),
    [
        ('{"type":"text","context":"c1","text":"Hello, "}', wire.Text("c1", "Hello, ")),
        ('{"type":"flush","context":"c1"}', wire.Flush("c1")),
        ('{"type":"end","context":"c1"}', wire.End("c1")),
        ('{"type":"cancel","context":"c1","played":31200}', wire.Cancel("c1", 31200)),
        ('{"type":"cancel","context":"c1"}', wire.Cancel("c1")),
        ('{"type":"played","context":"c1","samples":48000}', wire.Played("c1", 48000)),
        ('{"type":"ping"}', wire.Ping()),
        ('{"type":"ping","unknown":[1,2]}', wire.Ping()),
    ],
)
def test_every_client_message_is_understood(message: str, parsed: wire.AnyClientMessage):
    assert wire.parse(message) == parsed


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ("", None),
        ("{", None),
        ("[]", None),
        ("null", None),
        ('"text"', None),
        ("{}", None),
        ('{"type":"shout","context":"c1"}', "c1"),
        ('{"type":"text","context":"c1"}', "c1"),
        ('{"type":"text","context":"c1","text":7}', "c1"),
        ('{"type":"text","context":7,"text":"hello"}', None),
        ('{"type":"text","context":"","text":"hello"}', None),
        ('{"type":"start","context":"c1","speed":9}', "c1"),
        ('{"type":"start","context":"c1","speed":"fast"}', "c1"),
        ('{"type":"start","context":"c1","sample_rate":12345}', "c1"),
        ('{"type":"start","context":"c1","lead_ms":-1}', "c1"),
        ('{"type":"cancel","context":"c1","played":-5}', "c1"),
        ('{"type":"text","context":"c1","text":"\\ud800"}', None),
    ],
)
def test_what_is_no_message_is_refused_and_names_the_context_where_it_can(message: str, about: str | None):
    with pytest.raises(wire.BadMessage) as refused:
        wire.parse(message)

    assert refused.value.about == about
    assert str(refused.value)


@given(st.text(max_size=200))
def test_no_text_breaks_the_parser(message: str):
    with contextlib.suppress(wire.BadMessage):
        wire.parse(message)


def test_an_error_about_a_message_carries_no_context():
    message = wire.serialize(wire.Error("bad_message", "no", about="c1"))

    assert json.loads(message) == {
        "type": "error",
        "context": None,
        "about": "c1",
        "code": "bad_message",
        "message": "no",
    }


def test_an_error_that_ends_a_context_carries_it():
    message = wire.serialize(wire.Error("overloaded", "full", context="c1", retry_after=1.5))

    assert json.loads(message) == {
        "type": "error",
        "context": "c1",
        "code": "overloaded",
        "message": "full",
        "retry_after": 1.5,
    }


def test_the_audio_header_is_sixteen_bytes_in_network_order():
    header = wire.audio_header(first=True, stream=0x0203, sequence=0x04050607, start=0x08090A0B0C0D0E0F)

    assert header == bytes([1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])


def test_sequence_numbers_wrap():
    assert wire.audio_header(first=False, stream=1, sequence=2**32 + 5, start=0)[4:8] == b"\0\0\0\5"


@pytest.mark.parametrize("depth", [100, 990, 5_000, 50_000])
def test_a_deep_message_is_read_or_refused(depth: int):
    message = '{"type":"ping","x":' + "[" * depth + "]" * depth + "}"
    with contextlib.suppress(wire.BadMessage):
        assert wire.parse(message) == wire.Ping()
