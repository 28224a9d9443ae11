"""Where the clients of other services put their key: headers, the query, or among the subprotocols.

A query string ends up in logs of whatever lies between, so the native wire takes no key there; a browser that speaks
one of these protocols has no other place.
"""

from collections.abc import Iterable, Mapping

_HEADERS = ("xi-api-key", "x-api-key")
_PARAMETERS = ("xi-api-key", "xi_api_key", "api_key", "access_token", "single_use_token", "authorization")
_SCHEMES = frozenset({"bearer", "token"})


def key_of(
    headers: Mapping[str, str], query: Mapping[str, str] | None = None, subprotocols: Iterable[str] = ()
) -> str | None:
    """The key of a request, if it has one. `headers`: lower-case names."""
    if key := without_scheme(headers.get("authorization", "")):
        return key
    for name in _HEADERS:
        if key := headers.get(name, "").strip():
            return key
    for name in _PARAMETERS:
        if key := without_scheme((query or {}).get(name, "")):
            return key
    offered = tuple(subprotocols)
    return offered[1] if len(offered) > 1 and offered[0].lower() in _SCHEMES else None


def without_scheme(value: str) -> str:
    """`Bearer KEY`, `Token KEY` or `KEY`: the key."""
    scheme, _, key = value.strip().partition(" ")
    return key.strip() if scheme.lower() in _SCHEMES else value.strip()
