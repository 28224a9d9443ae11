"""A connection over a socket the test can pause: real encoders and admission, a scripted voice."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from scripted_stage import HEART, spoken
from voxgate.admission.controller import Controller
from voxgate.admission.controller import Limits as HouseLimits
from voxgate.gateway.accounts import EVERYBODY
from voxgate.gateway.connection import Connection
from voxgate.gateway.encoding import Encoders
from voxgate.gateway.house import House
from voxgate.gateway.session import Defaults, Limits
from voxgate.synth.segment import Segment, Style


class PausableSocket:
    """What a connection sees of uvicorn: messages in, messages out while it is writable, a close that always works."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any] | bytes] = []
        self.arrived = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.unacknowledged = 0
        self.closed_with: int | None = None
        self.broken = False

    def say(self, type: str, **fields: Any) -> None:
        self.inbox.put_nowait({"type": "websocket.receive", "text": json.dumps({"type": type, **fields})})

    def hang_up(self) -> None:
        self.inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})

    async def send(self, message: Any) -> None:
        await self.writable.wait()
        if self.broken:
            raise RuntimeError("broken on purpose")
        self.sent.append(json.loads(message["text"]) if "text" in message else message["bytes"])
        self.arrived.set()

    def unacknowledged_bytes(self) -> int:
        return self.unacknowledged

    def force_close(self, code: int) -> None:
        if self.closed_with is None:
            self.closed_with = code
            self.inbox.put_nowait({"type": "websocket.disconnect", "code": code})

    async def until(self, type: str) -> dict[str, Any]:
        while True:
            for message in self.sent:
                if isinstance(message, dict) and message["type"] == type:
                    return message
            self.arrived.clear()
            await asyncio.wait_for(self.arrived.wait(), 10)

    @property
    def audio(self) -> list[bytes]:
        return [message for message in self.sent if isinstance(message, bytes)]


class ScriptedSynthesizer:
    """Speaks every segment on the next turn of the loop, unless it is told to wait."""

    voices = (HEART,)
    ready = True
    backlog = 0

    def __init__(self) -> None:
        self.listeners: dict[int, Any] = {}
        self.silent = False

    def open(self, utterance: int, style: Style, listener: Any, *, crowding: bool) -> None:
        self.listeners[utterance] = listener

    def speak(self, utterance: int, segment: Segment) -> None:
        if not self.silent:
            asyncio.get_running_loop().call_soon(self._answer, utterance, segment)

    def _answer(self, utterance: int, segment: Segment) -> None:
        if listener := self.listeners.get(utterance):
            listener.on_audio(utterance, segment, spoken(segment))

    def is_cached(self, segment: Segment, style: Style) -> bool:
        return False

    def cover(self, utterance: int, until: float) -> None:
        assert utterance in self.listeners

    def hold(self, utterance: int) -> None:
        assert utterance in self.listeners

    def release(self, utterance: int) -> None:
        assert utterance in self.listeners

    def close_utterance(self, utterance: int) -> None:
        del self.listeners[utterance]


class Scene:
    """One connection being served."""

    def __init__(self, encoders: Encoders, limits: Limits | None = None) -> None:
        self.socket = PausableSocket()
        self.synthesizer = ScriptedSynthesizer()
        self.controller = Controller(HouseLimits())
        self.house = House(self.synthesizer, encoders, self.controller)  # pyright: ignore[reportArgumentType]
        self.connection = Connection(
            self.house,
            EVERYBODY,
            limits or Limits(),
            Defaults(codec="pcm_s16le"),
            self.socket.inbox.get,
            self.socket.send,
            self.socket,  # pyright: ignore[reportArgumentType]
        )
        self.served = asyncio.create_task(self.connection.serve())

    async def over(self) -> None:
        await asyncio.wait_for(self.served, 10)


async def live(scene: Scene) -> None:
    """Until a context is open, which the client is not told."""
    while not scene.connection.session.live:  # noqa: ASYNC110
        await asyncio.sleep(0)


@pytest.fixture
async def encoders() -> AsyncIterator[Encoders]:
    made = Encoders(threads=1)
    yield made
    made.close()


async def test_text_comes_back_as_sound(encoders: Encoders):
    scene = Scene(encoders)
    scene.socket.say("text", context="c1", text="One two three.")
    scene.socket.say("end", context="c1")
    done = await scene.socket.until("done")
    scene.socket.hang_up()
    await scene.over()

    pcm = np.frombuffer(b"".join(message[16:] for message in scene.socket.audio), np.int16)
    assert len(pcm) == done["samples"] == 3 * 5760


async def test_hanging_up_leaves_nothing_running(encoders: Encoders):
    scene = Scene(encoders)
    scene.synthesizer.silent = True
    scene.socket.say("text", context="c1", text="One two three. Four.")
    await scene.socket.until("started")
    assert scene.synthesizer.listeners

    scene.socket.hang_up()
    await scene.over()

    assert not scene.synthesizer.listeners
    assert scene.controller.utterances == 0


async def test_a_socket_that_takes_nothing_is_closed_as_slow(encoders: Encoders):
    scene = Scene(encoders, Limits(stall_s=0.2))
    await scene.socket.until("ready")
    scene.socket.writable.clear()
    scene.socket.say("ping")
    await scene.over()

    assert scene.socket.closed_with == 4408


async def test_unacknowledged_bytes_stop_the_sending_and_their_going_resumes_it(encoders: Encoders):
    scene = Scene(encoders)
    scene.socket.unacknowledged = 10**9
    scene.socket.say("text", context="c1", text="One two three.")
    scene.socket.say("end", context="c1")
    await live(scene)
    await asyncio.sleep(0.3)  # longer than a blocked socket is left alone
    assert scene.socket.audio == []

    scene.socket.unacknowledged = 0
    await scene.socket.until("done")

    scene.socket.hang_up()
    await scene.over()


async def test_answers_nobody_reads_stop_the_reading(encoders: Encoders):
    scene = Scene(encoders, Limits(stall_s=5))
    await scene.socket.until("ready")
    scene.socket.writable.clear()
    for _ in range(2_000):
        scene.socket.say("ping")
    for _ in range(5_000):
        await asyncio.sleep(0)
    assert scene.socket.inbox.qsize() > 1_000

    scene.socket.writable.set()
    while sum(isinstance(m, dict) and m["type"] == "pong" for m in scene.socket.sent) < 1_900:
        scene.socket.arrived.clear()
        await asyncio.wait_for(scene.socket.arrived.wait(), 10)

    scene.socket.hang_up()
    await scene.over()


async def test_persistent_flooding_closes_with_1008(encoders: Encoders):
    scene = Scene(encoders, Limits(messages_per_second=5))
    for _ in range(30):
        scene.socket.say("ping")
    await scene.over()

    assert scene.socket.closed_with == 1008


async def test_a_fault_of_ours_closes_with_1011(encoders: Encoders, caplog: pytest.LogCaptureFixture):
    scene = Scene(encoders)
    await scene.socket.until("ready")
    scene.socket.broken = True
    scene.socket.say("ping")
    await scene.over()

    assert scene.socket.closed_with == 1011
    assert "a connection failed" in caplog.text


async def test_draining_closes_the_idle_at_once_and_the_busy_when_done(encoders: Encoders):
    idle, busy = Scene(encoders), Scene(encoders)
    busy.socket.say("text", context="c1", text="One two three")
    await live(busy)

    for scene in (idle, busy):
        scene.connection.drain()
    await idle.over()
    assert (idle.socket.closed_with, busy.socket.closed_with) == (1001, None)

    busy.socket.say("end", context="c1")
    await busy.socket.until("done")
    busy.connection.drain()
    await busy.over()
    assert busy.socket.closed_with == 1001
