import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from running import eventually
from voxgate.admission.quotas import Quota, Quotas, Usage
from voxgate.gateway.house import clock
from voxgate.gateway.ledger import REMEMBERED, Ledger, Report, Sums

USAGES = st.builds(Usage, *[st.integers(0, 9)] * 4)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), USAGES), max_size=20))
def test_each_gateway_is_told_what_all_the_others_use(reports: list[tuple[int, str, Usage]]):
    sums, last = Sums(), {}
    for gateway, account, usage in reports:
        sums.report(gateway, {account: usage})
        last[gateway, account] = usage
    for gateway in range(3):
        for account in "ab":
            expected = sum(usage.contexts for (g, a), usage in last.items() if g != gateway and a == account)
            assert sums.others(gateway, account).contexts == expected


def test_a_gateway_that_is_gone_uses_nothing_but_has_sent_what_it_sent():
    sums = Sums()
    sums.report(1, {"bot": Usage(2, 3, 4, 500)})
    assert sums.leave(1) == ("bot",)
    assert sums.others(2, "bot") == Usage(characters=500)


def test_accounts_without_number_are_forgotten_and_those_in_use_are_not():
    sums = Sums()
    sums.report(1, {"bot": Usage(connections=1, characters=7)})
    for number in range(3 * REMEMBERED):
        sums.report(1, {f"address {number}": Usage(characters=1)})
    assert len(sums.accounts) <= REMEMBERED
    assert sums.others(2, "bot") == Usage(connections=1, characters=7)


async def test_more_accounts_than_fit_a_message_are_told_all(path: Path):
    ledger, one, other = Ledger(path), Quotas(), Quotas()
    names = [f"{number:05} {'x' * 110}" for number in range(9_000)]
    for name in names:
        one.connect(name, clock())
    ledger.start()
    try:
        async with reporting(path, one, other):
            await eventually("all", lambda: all(other.usage(name).connections == 1 for name in names))
    finally:
        ledger.close()


def gateway() -> Quotas:
    quotas = Quotas()
    quotas.declare("bot", Quota(connections=2, characters_per_minute=600), clock())
    return quotas


@asynccontextmanager
async def reporting(path: Path, *gateways: Quotas) -> AsyncIterator[list["asyncio.Task[None]"]]:
    tasks = [asyncio.create_task(Report(path, quotas).run()) for quotas in gateways]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


async def test_n_gateways_are_one_limit(path: Path):
    ledger, one, other = Ledger(path), gateway(), gateway()
    ledger.start()
    try:
        one.connect("bot", clock())
        async with reporting(path, one, other):
            await eventually("one knows of the other", lambda: other.usage("bot").connections == 1)
            assert other.connect("bot", clock()) is None
            await eventually("and the other way round", lambda: one.usage("bot").connections == 2)
            assert one.connect("bot", clock()) is not None
            one.characters("bot", 600, clock())
            await eventually("characters", lambda: other.usage("bot").characters == 600)
            assert other.characters("bot", 100, clock()) is not None
    finally:
        ledger.close()


async def test_what_a_gateway_used_is_free_again_when_it_dies(path: Path):
    ledger, one, other = Ledger(path), gateway(), gateway()
    ledger.start()
    try:
        async with reporting(path, one, other) as (first, _):
            one.connect("bot", clock())
            await eventually("it is known", lambda: other.usage("bot").connections == 1)
            first.cancel()
            with suppress(asyncio.CancelledError):
                await first
            await eventually("it is free", lambda: other.usage("bot").connections == 0)
    finally:
        ledger.close()


async def test_a_gateway_counts_alone_until_there_is_a_ledger_and_then_tells_all(path: Path):
    one, other = gateway(), gateway()
    async with reporting(path, one, other):
        one.connect("bot", clock())
        ledger = Ledger(path)
        ledger.start()
        try:
            await eventually("it is told", lambda: other.usage("bot").connections == 1)
        finally:
            ledger.close()


LIMIT_BYTES = 2_000_000  # of a backlog; what is written without waiting is five times as much


def change_often(quotas: Quotas, round: int) -> None:
    for number in range(100):
        quotas.characters(f"account {number} {'x' * 40}", round, clock())


async def backlog(reader: asyncio.StreamReader, last: int) -> int:
    """How many bytes came until the sum of all rounds was told."""
    total, wanted = 0, b'"characters":%d' % sum(range(last + 1))
    while line := await reader.readline():
        total += len(line)
        if wanted in line:
            return total
    raise AssertionError("the connection has ended")


async def test_a_supervisor_that_does_not_read_costs_a_gateway_no_memory(path: Path):
    quotas, connected = Quotas(), asyncio.get_running_loop().create_future()
    server = await asyncio.start_unix_server(lambda *ends: connected.set_result(ends), path, limit=1 << 16)
    async with server, reporting(path, quotas):
        reader, writer = await connected
        for round in range(1000):
            change_often(quotas, round)
            await asyncio.sleep(0)
        assert await backlog(reader, 999) < LIMIT_BYTES
        writer.close()


async def test_a_gateway_that_does_not_read_costs_the_supervisor_no_memory(path: Path):
    ledger, quotas = Ledger(path), Quotas()
    ledger.start()
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 16)
        async with reporting(path, quotas):
            for round in range(1000):
                change_often(quotas, round)
                await asyncio.sleep(0.001)  # its thread is to take every round, not only the last
            assert await backlog(reader, 999) < LIMIT_BYTES
        writer.close()
    finally:
        ledger.close()
