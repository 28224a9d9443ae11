"""What several gateway processes must know of each other: what every account uses, kept by the supervisor.

The supervisor's side (`Ledger`) adds up what the gateways report and tells each what all the others use; a gateway's
side (`Report`) sends changes as they happen. A change is known everywhere after two messages on local sockets, well
under a millisecond when nobody is busy; in that time two gateways may each give away what is there once.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from pathlib import Path

import msgspec

from ..admission.quotas import Quotas, Usage
from .house import clock
from .local_service import MESSAGE_BYTES, LocalService

logger = logging.getLogger("voxgate.ledger")

ACCOUNTS = 1000  # of one message, well within that
REMEMBERED = 20_000  # accounts; addresses are without number
RECONNECT_S = 0.2

Usages = dict[str, Usage]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Usages).decode


class Sums:
    """The usage of every account by gateway. Pure."""

    def __init__(self) -> None:
        self._usage: dict[str, dict[int, Usage]] = {}  # account -> gateway -> what it uses there
        self._gone: dict[str, int] = defaultdict(int)  # characters that gateways sent which are no more

    def report(self, gateway: int, usages: Usages) -> None:
        """What these accounts use on one gateway now."""
        for account, usage in usages.items():
            by_gateway = self._usage.pop(account, {})
            by_gateway[gateway] = usage
            self._usage[account] = by_gateway  # the last: those that were not heard of for long are first
        if len(self._usage) > REMEMBERED:
            self._forget()

    def _forget(self) -> None:
        """Makes room: of the accounts that use nothing anywhere those that were not heard of for the longest."""
        idle = [account for account, by_gateway in self._usage.items() if not any(map(_in_use, by_gateway.values()))]
        for account in idle[: REMEMBERED // 10]:
            del self._usage[account]
            self._gone.pop(account, None)

    def leave(self, gateway: int) -> tuple[str, ...]:
        """The gateway has ended, and with it all that was used there, but for what was sent; the accounts it had."""
        accounts = tuple(account for account, by_gateway in self._usage.items() if gateway in by_gateway)
        for account in accounts:
            self._gone[account] += self._usage[account].pop(gateway).characters
        return accounts

    def others(self, gateway: int, account: str) -> Usage:
        """What an account uses on all gateways but this one."""
        others = [usage for other, usage in self._usage.get(account, {}).items() if other != gateway]
        return Usage(
            connections=sum(usage.connections for usage in others),
            contexts=sum(usage.contexts for usage in others),
            utterances=sum(usage.utterances for usage in others),
            characters=sum(usage.characters for usage in others) + self._gone.get(account, 0),
        )

    @property
    def accounts(self) -> tuple[str, ...]:
        """Every account that was ever reported."""
        return tuple(self._usage)


class Ledger(LocalService):
    """The supervisor's side."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "ledger")
        self._sums = Sums()
        self._news: dict[int, _News] = {}  # by gateway
        self._gateways = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._gateways += 1
        gateway = self._gateways
        news = self._news[gateway] = _News(self._sums)
        news.add(self._sums.accounts)
        telling = asyncio.create_task(self._tell(gateway, news, writer))
        try:
            while line := await reader.readline():
                usages = _decode(line)
                self._sums.report(gateway, usages)
                self._tell_others(gateway, tuple(usages))
        except (OSError, ValueError) as problem:
            logger.error("a gateway's report cannot be read: %s", problem)
        finally:
            del self._news[gateway]
            self._tell_others(gateway, self._sums.leave(gateway))
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    def _tell_others(self, gateway: int, accounts: tuple[str, ...]) -> None:
        for other, news in self._news.items():
            if other != gateway:
                news.add(accounts)

    async def _tell(self, gateway: int, news: "_News", writer: asyncio.StreamWriter) -> None:
        """What has changed, as it is when the gateway takes it: one that reads nothing is not written to."""
        while True:
            accounts = await news.take()
            for line in _lines({account: self._sums.others(gateway, account) for account in accounts}):
                writer.write(line)
                await writer.drain()


class _News:
    """The accounts of which one gateway has not been told the latest: names only, so that there is an end to them."""

    def __init__(self, sums: Sums) -> None:
        self._sums = sums
        self._accounts: set[str] = set()
        self._some = asyncio.Event()

    def add(self, accounts: tuple[str, ...]) -> None:
        self._accounts.update(accounts)
        if len(self._accounts) > 2 * REMEMBERED:
            self._accounts.intersection_update(self._sums.accounts)
        if self._accounts:
            self._some.set()

    async def take(self) -> tuple[str, ...]:
        """Waits until there are any."""
        await self._some.wait()
        self._some.clear()
        accounts = tuple(self._accounts)
        self._accounts.clear()
        return accounts


class Report:
    """A gateway's side: tells the ledger what changed here, and the quotas what changed elsewhere."""

    def __init__(self, path: Path, quotas: Quotas) -> None:
        self._path = path
        self._quotas = quotas

    async def run(self) -> None:
        """Until cancelled. A ledger that is not there is looked for again: until then this gateway counts alone."""
        while True:
            with contextlib.suppress(OSError):  # not there yet, or not any more
                reader, writer = await asyncio.open_unix_connection(self._path, limit=MESSAGE_BYTES)
                try:
                    await self._exchange(reader, writer)
                except ValueError as problem:
                    logger.error("what the ledger says cannot be read: %s", problem)
                finally:
                    writer.close()
            await asyncio.sleep(RECONNECT_S)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        telling = asyncio.create_task(self._tell(writer))
        try:
            while line := await reader.readline():
                for account, usage in _decode(line).items():
                    self._quotas.others(account, usage, clock())
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        changed = asyncio.Event()
        self._quotas.on_change = changed.set
        self._quotas.tell_all_again()
        while True:
            await changed.wait()
            changed.clear()
            for line in _lines(self._quotas.take_changes()):
                writer.write(line)
                await writer.drain()


def _in_use(usage: Usage) -> bool:
    return bool(usage.connections or usage.contexts or usage.utterances)


def _lines(usages: Usages) -> list[bytes]:
    """As many messages as it takes."""
    accounts = list(usages.items())
    return [_encode(dict(accounts[at : at + ACCOUNTS])) + b"\n" for at in range(0, len(accounts), ACCOUNTS)]
