import base64

import pytest

from voxgate.gateway.accounts import EVERYBODY, Keyring
from voxgate.gateway.handshake import Accepted, Doorkeeper, Rejection
from voxgate.gateway.session import Defaults

PLAIN = Accepted(EVERYBODY, None, Defaults())


def subprotocol(key: str) -> str:
    return "voxgate.key." + base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def test_without_keys_everyone_is_let_in():
    assert Doorkeeper(Keyring(()), ()).examine({}, [], "") == PLAIN


def test_the_subprotocol_is_confirmed_only_where_it_was_offered():
    door = Doorkeeper(Keyring(()), ())

    assert door.examine({}, ["voxgate.v1"], "") == Accepted(EVERYBODY, "voxgate.v1", Defaults())
    assert door.examine({}, ["something.else"], "") == PLAIN


@pytest.mark.parametrize("key", ["secret", "?>~ü", "a-b_c"])
def test_a_key_comes_by_header_or_by_the_browsers_subprotocol(key: str):
    keyring = Keyring(["other", key])
    door, holder = Doorkeeper(keyring, ()), keyring.holder(key)
    assert holder is not None

    assert door.examine({"authorization": f"Bearer {key}"}, [], "") == Accepted(holder, None, Defaults())
    assert door.examine({}, ["voxgate.v1", subprotocol(key)], "") == Accepted(holder, "voxgate.v1", Defaults())


@pytest.mark.parametrize(
    ("headers", "offered", "query"),
    [
        ({}, [], ""),
        ({"authorization": "Bearer wrong"}, [], ""),
        ({"authorization": "Basic secret"}, [], ""),
        ({"authorization": "Bearer "}, [], ""),
        ({}, [subprotocol("wrong")], ""),
        ({}, ["voxgate.key.%%%"], ""),
        ({}, [], "key=secret"),
    ],
)
def test_a_missing_or_wrong_key_is_401(headers: dict[str, str], offered: list[str], query: str):
    answer = Doorkeeper(Keyring(["secret"]), ()).examine(headers, offered, query)

    assert isinstance(answer, Rejection)
    assert answer.status == 401


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://voice.example:8080", True),
        ("https://app.example", True),
        ("https://evil.example", False),
        ("http://voice.example", False),
        ("null", False),
    ],
)
def test_pages_connect_from_our_own_host_and_from_listed_origins(origin: str, allowed: bool):
    door = Doorkeeper(Keyring(()), ["https://app.example"])

    answer = door.examine({"origin": origin, "host": "voice.example:8080"}, [], "")

    assert isinstance(answer, Accepted) is allowed
    assert allowed or answer.status == 403  # pyright: ignore[reportAttributeAccessIssue]


def test_any_origin_may_connect_where_the_operator_says_so():
    assert Doorkeeper(Keyring(()), ["*"]).examine({"origin": "https://x.example"}, [], "") == PLAIN


def test_query_parameters_are_the_defaults_of_contexts():
    answer = Doorkeeper(Keyring(()), ()).examine(
        {}, [], "voice=heart&codec=pcm_s16le&sample_rate=16000&speed=1.5&other=1"
    )

    assert answer == Accepted(EVERYBODY, None, Defaults("heart", "pcm_s16le", 16000, 1.5))


@pytest.mark.parametrize("query", ["speed=9", "speed=fast", "sample_rate=123"])
def test_a_wrong_query_parameter_is_400(query: str):
    answer = Doorkeeper(Keyring(()), ()).examine({}, [], query)

    assert isinstance(answer, Rejection)
    assert answer.status == 400
    assert query.partition("=")[0] in answer.message


@pytest.mark.parametrize("origin", ["http://[", "//", "http://]:99999", "\x00"])
def test_a_malformed_origin_is_a_foreign_one(origin: str):
    answer = Doorkeeper(Keyring(()), ()).examine({"origin": origin, "host": "voice.example"}, [], "")

    assert isinstance(answer, Rejection)
    assert answer.status == 403
