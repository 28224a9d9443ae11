import asyncio
import itertools
import time

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from scripted_peer import Peer, audio, peer, silence, started
from voxgate.loadtest import driver as driving
from voxgate.loadtest.conversation import Target
from voxgate.loadtest.driver import Driver
from voxgate.loadtest.plan import Load
from voxgate.loadtest.statistics import Statistics

MIX = (("short", 1.0),)
BRIEF = b"\0\0" * 2400  # a tenth of a second


async def speak_one(server: Peer, stream: int) -> None:
    context = (await server.hear_until("end"))[0]["context"]
    await server.say(started(context, stream), audio(0, 0, BRIEF, stream))
    await server.say({"type": "done", "context": context, "samples": 2400})


async def speak_briefly(server: Peer) -> None:
    for stream in itertools.count(1):
        await speak_one(server, stream)


async def drive(load: Load, url: str) -> Statistics:
    return await Driver(load, Target(url), time.monotonic()).run()


async def test_a_stream_asks_again_when_it_has_heard_the_last_one_out():
    async with peer(speak_briefly) as url:
        statistics = await drive(Load(streams=2, ramp=0.0, duration=0.65, mix=MIX), url)

    assert 4 <= statistics.outcomes["done"] <= 14  # 7 each, were the machine idle; never more
    assert statistics.gapless == statistics.judged == statistics.outcomes["done"]
    assert statistics.connects.count <= 2


async def test_arrivals_do_not_wait_for_one_another():
    waiting, ten_wait = 0, asyncio.Event()

    async def leave_waiting(server: Peer) -> None:
        nonlocal waiting
        await server.hear_until("end")
        waiting += 1
        if waiting == 10:
            ten_wait.set()

    async with peer(leave_waiting) as url:
        driver = Driver(Load(rate=100.0, ramp=0.0, duration=600.0, mix=MIX), Target(url), time.monotonic())
        running = asyncio.create_task(driver.run())
        await ten_wait.wait()
        assert driver.live >= 10
        driver.stop("interrupted")
        statistics = await running

    assert statistics.outcomes["cut"] >= 10
    assert statistics.cut_short == "interrupted"


async def test_who_is_refused_asks_again_when_the_server_says():
    async def refuse(server: Peer) -> None:
        while True:
            context = (await server.hear_until("end"))[0]["context"]
            error = {"code": "overloaded", "message": "full", "retry_after": 0.05}
            await server.say({"type": "error", "context": context, **error})

    async with peer(refuse) as url:
        statistics = await drive(Load(streams=1, ramp=0.0, duration=0.5, mix=MIX), url)

    assert 2 <= statistics.refusals.latency["overloaded"].count <= 11
    assert set(statistics.outcomes) == {"refused"}


async def test_a_full_house_is_a_refusal():
    def full(_: ServerConnection, __: Request) -> Response:
        return Response(503, "No", Headers({"Retry-After": "60", "Content-Length": "0"}), b"")

    async with peer(silence, full) as url:
        statistics = await drive(Load(streams=3, ramp=0.0, duration=0.5, mix=MIX), url)

    assert statistics.refusals.latency["handshake 503"].count == 3


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("closes", "closed 1011"),
        ("breaks the wire", "protocol"),
        ("fails", "engine_failed"),
        ("says nothing of it", "silent"),
    ],
)
async def test_what_goes_wrong_is_told_by_name(does, reason):
    async def fail(server: Peer) -> None:
        context = (await server.hear_until("end"))[0]["context"]
        match does:
            case "closes":
                await server.socket.close(1011)
            case "breaks the wire":
                await server.say(b"\x07")
            case "fails":
                await server.say({"type": "error", "context": context, "code": "engine_failed", "message": ""})
            case _:
                await server.say(started(context), {"type": "done", "context": context, "samples": 0})

    async with peer(fail) as url:
        statistics = await drive(Load(streams=1, ramp=0.0, duration=0.2, mix=MIX), url)

    assert {reason: latency.count for reason, latency in statistics.failures.latency.items()} == {reason: 1}


async def test_a_server_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(driving, "STUCK_SECONDS", 0.1)

    async with peer(silence) as url:
        statistics = await drive(Load(streams=1, ramp=0.0, duration=0.2, mix=MIX), url)

    assert list(statistics.failures.latency) == ["stuck"]


async def test_a_server_that_is_gone_ends_the_run(monkeypatch):
    monkeypatch.setattr(driving, "GONE_SECONDS", 0.1)
    monkeypatch.setattr(driving, "RETRY_SECONDS", 0.05)

    served = asyncio.Event()

    async def speak_once(server: Peer) -> None:
        await speak_one(server, 1)
        await server.hear_until("end")  # asked again, so it has heard the first one out
        served.set()

    async with peer(speak_once) as url:
        driver = Driver(Load(streams=2, ramp=0.0, duration=600.0, mix=MIX), Target(url), time.monotonic())
        running = asyncio.create_task(driver.run())
        await served.wait()
    statistics = await running

    assert statistics.cut_short == "the server is gone"
    assert statistics.failures.latency["unreachable"].count >= 1


async def test_a_fault_of_our_own_is_raised_and_not_swallowed():
    async with peer(speak_briefly) as url:
        with pytest.raises(KeyError):
            await drive(Load(streams=1, ramp=0.0, duration=60.0, mix=(("epic", 1.0),)), url)
