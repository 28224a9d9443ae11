import os
import signal

from running import running_server, server_pid
from talk import talking


async def test_a_second_signal_ends_the_drain():
    with running_server("--drain-s", "600") as url:
        async with talking(url) as idle, talking(url) as talk:
            await talk.say("text", "c1", text="A long story indeed. " * 60)
            await talk.until_audio("c1")
            pid = server_pid(url)
            os.kill(pid, signal.SIGTERM)
            await idle.socket.wait_closed()
            os.kill(pid, signal.SIGTERM)
            error = await talk.until("error", "c1")
            closed_with = await talk.until_closed()

    assert error["code"] == "overloaded"
    assert closed_with in (1001, 1012)
