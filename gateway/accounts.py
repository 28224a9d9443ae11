"""Whose keys are let in, and what each may use.

Keys are held as SHA-256 digests and compared in constant time; the accounts file holds nothing else. A key of the
setting `keys` is an account of its own with the quota that all keys have.

    [[account]]
    name = "bot"
    key_sha256 = "5e88…"        # sha256sum of the key
    priority = 1                # the higher goes first among those that wait
    utterances = 20             # connections, contexts, characters_per_minute: likewise, all optional
"""

import hashlib
import hmac
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from ..admission.quotas import Quota

Bound = Annotated[int, msgspec.Meta(ge=1)]


UNLIMITED = Quota()


class AccountsError(ValueError):
    """The accounts file cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who a connection belongs to: the holder of a key, or an address, or everybody where neither counts."""

    name: str = ""
    priority: int = 0
    quota: Quota = UNLIMITED


EVERYBODY = Account()


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    key_sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    priority: Annotated[int, msgspec.Meta(ge=-100, le=100)] = 0
    connections: Bound | None = None
    contexts: Bound | None = None
    utterances: Bound | None = None
    characters_per_minute: Bound | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    account: tuple[_Row, ...] = ()


class Keyring:
    """Every key that is let in. Without any, everyone is, under their address if addresses have a quota."""

    def __init__(
        self,
        keys: Iterable[str],
        file: Path | None = None,
        *,
        key_quota: Quota | None = None,
        address_quota: Quota | None = None,
    ) -> None:
        """Raises `AccountsError`."""
        self._key_quota = key_quota or UNLIMITED
        self._address_quota = address_quota or UNLIMITED
        keys = tuple(keys)
        if not all(keys):
            raise AccountsError("an empty key among `keys` would be known to everybody")
        self._accounts = {_digest(key): self._of_key(_digest(key)) for key in keys}
        if file is not None:
            self._accounts |= self._read(file)

    @property
    def open(self) -> bool:
        """Whether no key is asked for."""
        return not self._accounts

    def holder(self, key: str) -> Account | None:
        """Whose key this is; None for one that is not known. Takes the same time whichever it is."""
        digest, found = _digest(key), None
        for known, account in self._accounts.items():
            if hmac.compare_digest(digest, known):
                found = account
        return found

    def of_address(self, address: str) -> Account:
        """Whom a connection without a key belongs to."""
        return EVERYBODY if self._address_quota == UNLIMITED else Account(f"address {address}", 0, self._address_quota)

    def _of_key(self, digest: bytes) -> Account:
        return Account(f"key {digest.hex()[:8]}", 0, self._key_quota)

    def _read(self, file: Path) -> dict[bytes, Account]:
        try:
            rows = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), _File).account
        except OSError as problem:
            raise AccountsError(f"{file}: {problem.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as problem:
            raise AccountsError(f"{file}: {problem}") from None
        if not rows:
            raise AccountsError(f"{file}: there is no [[account]] in it, which would let everybody in")
        for what, values in (("name", [row.name for row in rows]), ("key", [row.key_sha256 for row in rows])):
            if twice := {value for value in values if values.count(value) > 1}:
                raise AccountsError(f"{file}: the same {what} twice: {', '.join(sorted(twice))}")
        return {bytes.fromhex(row.key_sha256): Account(row.name, row.priority, self._quota(row)) for row in rows}

    def _quota(self, row: _Row) -> Quota:
        common = self._key_quota
        return Quota(
            connections=row.connections or common.connections,
            contexts=row.contexts or common.contexts,
            utterances=row.utterances or common.utterances,
            characters_per_minute=row.characters_per_minute or common.characters_per_minute,
        )


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
