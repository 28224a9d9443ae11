"""Pulled plugs: killed workers, readers that stall, clients that vanish, shutdowns in mid-sentence."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress

import pytest
from websockets.exceptions import InvalidStatus

from running import children_of, eventually, running_server, server_pid
from talk import talking

LONG = "This is a long story about nothing much at all. " * 40


async def test_killing_every_worker_ends_what_they_spoke_and_the_server_speaks_again():
    with running_server("--workers", "2") as url:
        pid = server_pid(url)
        async with talking(url) as talk:
            for number in range(40):
                await talk.say("start", f"c{number}", lead_ms=30_000, max_wait_ms=60_000)
                await talk.say("text", f"c{number}", text=LONG[: 300 + number])
                await talk.say("end", f"c{number}")
            await talk.until_audio("c0")
            workers = children_of(pid)
            assert len(workers) == 4
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            ended = 0
            failed = 0
            while ended < 40:
                message = await talk.receive()
                if isinstance(message, dict) and message["type"] in ("done", "error"):
                    ended += 1
                    failed += message.get("code") == "engine_failed"
            assert 1 <= failed <= 4

            await eventually("four workers again", lambda: len(children_of(pid)) == 4)
            await talk.speak("after", "And it speaks again.")


async def test_an_engine_that_keeps_dying_takes_nothing_new_until_a_probe_was_heard():
    with running_server("--workers", "1", "--engine-failures", "2") as url:
        pid = server_pid(url)
        async with talking(url) as talk:
            await talk.speak("before", "So that the engine is known.")
            victims = children_of(pid)
            assert len(victims) == 2
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            await eventually("both were missed", lambda: not set(victims) & set(children_of(pid)))
            await eventually("the breaker is open", lambda: state_of(url) in ("open", "half_open"))
            if state_of(url) == "open":
                await talk.say("text", "refused", text="Not now. ")
                error = await talk.until("error", "refused")
                assert error["code"] == "overloaded"
                assert 0 < error["retry_after"] <= 4
            await eventually("two workers again", lambda: len(children_of(pid)) == 2)
            await eventually("it may be tried", lambda: state_of(url) == "half_open")
            await talk.speak("probe", "And it speaks again.")
            await eventually("it is as before", lambda: state_of(url) in ("normal", "degraded"))


def state_of(url: str) -> str | None:
    """Of the engine's breaker; None while the server is not ready."""
    try:
        with urllib.request.urlopen(f"{url}/health/ready") as answer:
            return json.load(answer)["engines"]["hibari"]["state"]
    except urllib.error.HTTPError:
        return None


async def test_a_reader_that_never_recovers_is_closed_with_4408_and_others_live():
    with running_server("--stall-s", "1.5") as url:
        async with talking(url) as neighbour, talking(url, max_queue=1) as stalled:
            await stalled.say("start", "c1", codec="pcm_s16le", sample_rate=48000, lead_ms=30_000)
            await stalled.say("text", "c1", text=LONG)
            await stalled.until_audio("c1")
            await asyncio.sleep(4)  # reads nothing: the client library's queue and the socket's buffers fill
            await neighbour.speak("n", "I am not slow.")

            assert await stalled.until_closed() == 4408


async def test_a_reader_that_recovers_gets_everything():
    with running_server("--stall-s", "20") as url:
        async with talking(url, max_queue=1) as slow:
            await slow.say("start", "c1", codec="pcm_s16le", sample_rate=48000, lead_ms=2000)
            await slow.say("text", "c1", text=LONG[:240])
            await slow.say("end", "c1")
            await slow.until_audio("c1")
            await asyncio.sleep(4)
            done = await slow.until("done", "c1")

            assert len(slow.heard["c1"].pcm()) == done["samples"]


async def test_clients_that_vanish_leave_nothing_behind(server: str):
    for _ in range(5):
        async with talking(server) as talk:
            await talk.say("text", "c1", text=LONG)
            await talk.until_audio("c1")
            talk.socket.transport.abort()

    async with talking(server) as talk:
        await talk.speak("c1", "Room for me.")


async def test_keys_are_checked_before_the_upgrade():
    with running_server("--keys", "secret") as url:
        with pytest.raises(InvalidStatus) as refused:
            async with talking(url):
                pass
        assert refused.value.response.status_code == 401

        async with talking(url, additional_headers={"Authorization": "Bearer secret"}) as talk:
            await talk.speak("c1", "Let in.")
        async with talking(url, subprotocols=["voxgate.v1", "voxgate.key.c2VjcmV0"]) as talk:
            assert talk.socket.subprotocol == "voxgate.v1"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            await asyncio.to_thread(urllib.request.urlopen, f"{url}/v1/voices")


async def test_foreign_pages_are_refused_before_the_upgrade(server: str):
    with pytest.raises(InvalidStatus) as refused:
        async with talking(server, origin="https://evil.example"):
            pass
    assert refused.value.response.status_code == 403

    async with talking(server, origin=server):
        pass


async def test_a_full_house_is_refused_before_the_upgrade_with_a_hint():
    with running_server("--max-connections", "1") as url:
        async with talking(url):
            with pytest.raises(InvalidStatus) as refused:
                async with talking(url):
                    pass
        assert refused.value.response.status_code == 503
        assert int(refused.value.response.headers["Retry-After"]) >= 1

        for _ in range(100):  # the place is given back when the server has seen the close
            with suppress(InvalidStatus):
                async with talking(url) as talk:
                    await talk.speak("c1", "Now there is room.")
                    return
            await asyncio.sleep(0.05)
    pytest.fail("the place was never given back")


async def test_a_shutdown_lets_speech_finish_refuses_newcomers_and_closes_with_1001():
    with running_server() as url:
        pid = server_pid(url)
        async with talking(url) as idle, talking(url) as busy:
            await busy.say("start", "c1", lead_ms=0)
            await busy.say("text", "c1", text="This will be finished, although the server was asked to stop.")
            await busy.say("end", "c1")
            await busy.until_audio("c1")

            os.kill(pid, signal.SIGTERM)
            assert await idle.until_closed() == 1001
            await busy.say("text", "c2", text="Too late. ")
            late = await busy.until("error", "c2")
            done = await busy.until("done", "c1")

            assert await busy.until_closed() == 1001

    assert late["code"] == "overloaded"
    assert len(busy.heard["c1"].pcm()) == done["samples"]


async def test_a_shutdown_ends_at_its_deadline_what_does_not_finish():
    with running_server("--drain-s", "0.5") as url:
        pid = server_pid(url)
        async with talking(url) as talk:
            await talk.say("text", "c1", text=LONG)
            await talk.until_audio("c1")
            os.kill(pid, signal.SIGTERM)
            error = await talk.until("error", "c1")
            await talk.until_closed()

    assert error["code"] == "overloaded"


def test_a_port_in_use_is_one_clear_line(server: str):
    command = [sys.executable, "-m", "voxgate", "serve", "--port", server.rpartition(":")[2]]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert result.returncode == 1
    assert "cannot listen on 127.0.0.1" in result.stderr
    assert "Traceback" not in result.stderr
