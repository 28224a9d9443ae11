import asyncio

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from scripted_peer import Peer, peer, silence
from voxgate.client import ConnectionClosed, HandshakeRefused, Unreachable
from voxgate.loadtest.lines import Lines
from voxgate.loadtest.plan import Load
from voxgate.loadtest.statistics import Statistics


def lines_to(url: str, contexts: int = 1) -> tuple[Lines, Statistics]:
    statistics = Statistics(Load(streams=1), 0.0)
    return Lines(url, None, contexts, statistics), statistics


async def test_a_connection_is_shared_by_as_many_as_may_and_used_again():
    async with peer(silence) as url:
        lines, statistics = lines_to(url, contexts=2)
        async with lines.place() as one, lines.place() as two, lines.place() as three:
            assert one is two
            assert one is not three
        async with lines.place() as again:
            assert again in (one, three)
        assert statistics.connects.count == 2
        await lines.close()
        assert one.closed
        assert three.closed


async def test_who_comes_while_a_connection_is_being_opened_waits_for_that_one():
    async with peer(silence) as url:
        lines, statistics = lines_to(url, contexts=8)

        async def use() -> int:
            async with lines.place() as connection:
                return id(connection)

        assert len(set(await asyncio.gather(*(use() for _ in range(8))))) == 1
        assert statistics.connects.count == 1
        await lines.close()


async def test_a_slow_reader_shares_with_nobody():
    async with peer(silence) as url:
        lines, _ = lines_to(url, contexts=8)
        async with lines.place(slow=True) as slow, lines.place() as other:
            assert slow is not other
        assert slow.closed
        assert not other.closed
        await lines.close()


async def test_a_closed_connection_is_replaced():
    async def hang_up(server: Peer) -> None:
        await server.socket.close()

    async with peer(hang_up) as url:
        lines, statistics = lines_to(url)
        async with lines.place() as first:
            with pytest.raises(ConnectionClosed):
                await anext(await first.start())
        async with lines.place() as second:
            assert second is not first
        assert statistics.connects.count == 2
        await lines.close()


async def test_a_refusal_is_counted_once_and_told_to_everyone_who_waited():
    def full(_: ServerConnection, __: Request) -> Response:
        return Response(503, "No", Headers({"Retry-After": "2", "Content-Length": "0"}), b"")

    async with peer(silence, full) as url:
        lines, statistics = lines_to(url, contexts=3)

        async def use() -> None:
            async with lines.place():
                pass

        outcomes = await asyncio.gather(*(use() for _ in range(3)), return_exceptions=True)

        assert [type(outcome) for outcome in outcomes] == [HandshakeRefused] * 3
        assert {reason: latency.count for reason, latency in statistics.connect_refusals.latency.items()} == {
            "handshake 503": 1
        }


async def test_nobody_there_is_a_failure():
    async with peer(silence) as url:
        pass
    lines, statistics = lines_to(url)

    with pytest.raises(Unreachable):
        async with lines.place():
            pass
    assert list(statistics.connect_failures.latency) == ["Unreachable"]
