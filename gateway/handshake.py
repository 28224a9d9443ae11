"""May this socket be opened? Keys, origins and the subprotocol, decided on the HTTP request before the upgrade.

Keys are held as SHA-256 digests and compared in constant time. A key never travels in the query string, because query
strings end up in logs.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import msgspec

from .session import Defaults
from .wire import PROTOCOL, Rate, Speed

KEY_PROTOCOL = "voxgate.key."


@dataclass(frozen=True, slots=True)
class Rejection:
    """The HTTP answer instead of an upgrade."""

    status: int
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The upgrade: the subprotocol to confirm, and the defaults of the connection's contexts."""

    subprotocol: str | None
    defaults: Defaults


class Doorkeeper:
    """Knows the keys and origins that are let in. No keys: everyone is; no origins: pages of this very host are."""

    def __init__(self, keys: Iterable[str], origins: Iterable[str]) -> None:
        self._digests = [_digest(key) for key in keys]
        self._origins = frozenset(origins)

    def examine(self, headers: dict[str, str], subprotocols: list[str], query: str) -> Accepted | Rejection:
        """The answer to one WebSocket request. `headers`: lower-case names."""
        origin = headers.get("origin")
        if origin is not None and not self._knows_origin(origin, headers.get("host", "")):
            return Rejection(403, f"pages of {origin} may not connect: see the setting `origins`")
        if rejection := self.authorize(headers, subprotocols):
            return rejection
        try:
            defaults = msgspec.convert(dict(parse_qsl(query)), Query, strict=False)
        except msgspec.ValidationError as problem:
            return Rejection(400, f"query parameters: {problem}")
        return Accepted(
            subprotocol=PROTOCOL if PROTOCOL in subprotocols else None,
            defaults=Defaults(defaults.voice, defaults.codec, defaults.sample_rate, defaults.speed),
        )

    def authorize(self, headers: dict[str, str], subprotocols: Iterable[str] = ()) -> Rejection | None:
        """None, where the key is known or none is asked for."""
        if not self._digests:
            return None
        key = _bearer(headers.get("authorization", "")) or _key_among(subprotocols)
        if key is None:
            return Rejection(401, "a key is needed: Authorization: Bearer KEY")
        digest = _digest(key)
        if not any(hmac.compare_digest(digest, known) for known in self._digests):
            return Rejection(401, "this key is not known here")
        return None

    def _knows_origin(self, origin: str, host: str) -> bool:
        if "*" in self._origins or origin in self._origins:
            return True
        try:
            return urlsplit(origin).netloc.lower() == host.lower() != ""
        except ValueError:
            return False


class Query(msgspec.Struct, frozen=True):
    """Defaults for the contexts of a connection, as query parameters give them; unknown ones are ignored."""

    voice: str | None = None
    codec: str = "opus"
    sample_rate: Rate = 24000
    speed: Speed = 1.0


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _bearer(header: str) -> str | None:
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def _key_among(subprotocols: Iterable[str]) -> str | None:
    for name in subprotocols:
        if name.startswith(KEY_PROTOCOL):
            encoded = name[len(KEY_PROTOCOL) :]
            try:
                return base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                return None
    return None
