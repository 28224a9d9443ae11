from voxgate.client.errors import ConnectionClosed, ContextError, HandshakeRefused


def test_a_refusal_says_when_to_come_back():
    assert str(HandshakeRefused(503, 1.5, "full")) == "refused with HTTP 503: full (try again in 1.5 s)"
    assert str(HandshakeRefused(401, None, "no key")) == "refused with HTTP 401: no key"


def test_an_error_names_its_code():
    assert str(ContextError("c1", "overloaded", "no room", 2)) == "overloaded: no room (try again in 2 s)"
    assert str(ConnectionClosed(4408, "slow reader")) == "connection closed with code 4408: slow reader"
