import pytest

from voxgate.gateway.adapters.keys import key_of


@pytest.mark.parametrize(
    ("headers", "query", "subprotocols"),
    [
        ({"authorization": "Bearer k1"}, {}, ()),
        ({"authorization": "token k1"}, {}, ()),
        ({"authorization": "k1"}, {}, ()),
        ({"xi-api-key": "k1"}, {}, ()),
        ({"x-api-key": "k1"}, {}, ()),
        ({}, {"api_key": "k1"}, ()),
        ({}, {"access_token": "k1"}, ()),
        ({}, {"single_use_token": "k1"}, ()),
        ({}, {"authorization": "Bearer k1"}, ()),
        ({}, {}, ("token", "k1")),
        ({}, {}, ("bearer", "k1", "x-deepgram-session-id", "u")),
    ],
)
def test_a_key_is_found_wherever_the_clients_put_it(headers, query, subprotocols):
    assert key_of(headers, query, subprotocols) == "k1"


@pytest.mark.parametrize(
    ("headers", "subprotocols"),
    [({}, ()), ({"authorization": "Bearer "}, ()), ({"x-api-key": " "}, ("token",)), ({}, ("voxgate.v1", "k1"))],
)
def test_no_key_is_none(headers, subprotocols):
    assert not key_of(headers, {"model": "k1"}, subprotocols)
