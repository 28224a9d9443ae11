"""May this socket be opened? Keys, origins and the subprotocol, decided on the HTTP request before the upgrade.

A key never travels in the query string, because query strings end up in logs. Whose it is, the keyring knows
(accounts.py).
"""

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import msgspec

from .accounts import Account, Keyring
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
    """The upgrade: whose connection it is, the subprotocol to confirm, the defaults of the connection's contexts."""

    account: Account
    subprotocol: str | None
    defaults: Defaults


class Doorkeeper:
    """Knows the keys and origins that are let in. No keys: everyone is; no origins: pages of this very host are."""

    def __init__(self, keyring: Keyring, origins: Iterable[str]) -> None:
        self._keyring = keyring
        self._origins = frozenset(origins)

    def examine(
        self, headers: dict[str, str], subprotocols: list[str], query: str, address: str = ""
    ) -> Accepted | Rejection:
        """The answer to one WebSocket request. `headers`: lower-case names; `address`: where it comes from."""
        if (refused := self.check_origin(headers)) is not None:
            return refused
        account = self.authorize(headers, subprotocols, address)
        if isinstance(account, Rejection):
            return account
        try:
            defaults = msgspec.convert(dict(parse_qsl(query)), Query, strict=False)
        except msgspec.ValidationError as problem:
            return Rejection(400, f"query parameters: {problem}")
        return Accepted(
            account,
            subprotocol=PROTOCOL if PROTOCOL in subprotocols else None,
            defaults=Defaults(defaults.voice, defaults.codec, defaults.sample_rate, defaults.speed),
        )

    def check_origin(self, headers: dict[str, str]) -> Rejection | None:
        """A refusal for a page that is not one of those that may connect."""
        origin = headers.get("origin")
        if origin is None or self._knows_origin(origin, headers.get("host", "")):
            return None
        return Rejection(403, f"pages of {origin} may not connect: see the setting `origins`")

    def authorize(
        self, headers: dict[str, str], subprotocols: Iterable[str] = (), address: str = ""
    ) -> Account | Rejection:
        """Whose request this is."""
        return self.account_of(_bearer(headers.get("authorization", "")) or _key_among(subprotocols), address)

    def account_of(self, key: str | None, address: str) -> Account | Rejection:
        """Whose this key is; whoever comes from `address`, where none is asked for."""
        if self._keyring.open:
            return self._keyring.of_address(address)
        if key is None:
            return Rejection(401, "a key is needed: Authorization: Bearer KEY")
        return self._keyring.holder(key) or Rejection(401, "this key is not known here")

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
