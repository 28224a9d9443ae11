import os
import signal
import socket

from running import running_server, server_pid
from talk import talking
from voxgate.gateway.server import SEND_BUFFER_BYTES, _bind


def test_the_listener_bounds_what_the_kernel_swallows():
    with _bind("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
        with accepted:
            # Linux doubles the figure it is given, for its own book-keeping.
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 2 * SEND_BUFFER_BYTES


def test_the_listener_takes_ipv6():
    with _bind("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"


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
