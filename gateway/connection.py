"""One WebSocket around one session: reads into it, writes out of it, keeps its one timer.

Decides nothing of the protocol. A reader that stopped reading is seen by the bytes it has not acknowledged
(protocol.py), because buffers hide it everywhere else for minutes.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from ..admission.answer import Ask, Permit, Refusal, Waiting
from ..codecs.packetizer import Format
from ..synth.engine import Voice
from ..synth.segment import Segment, Style
from ..synth.speech import Speech
from ..synth.wakeup import call_at
from . import errors
from .accounts import Account
from .context import NEVER, Failure
from .dialect import Dialect, Item
from .encoding import EncoderTrack
from .house import House
from .native import NATIVE
from .session import Defaults, Limits, Session
from .stage import Part
from .wire import EngineState

logger = logging.getLogger("voxgate.connection")

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

UNACKNOWLEDGED_FLOOR_BYTES = 32_768  # what a socket may hold back before its reader is called slow
UNACKNOWLEDGED_S = 2.0  # … plus the lead and this much audio
RETRY_S = 0.1  # how soon a blocked socket is looked at again

clock = time.monotonic


class Socket(Protocol):
    """What lies under `receive` and `send`, where they are not enough: protocol.py has it of uvicorn's."""

    def unacknowledged_bytes(self) -> int: ...

    def force_close(self, code: int) -> None: ...


class Connection:
    """Serves one accepted socket until it closes; implements the session's `Stage` over the house's parts."""

    def __init__(
        self,
        house: House,
        account: Account,
        limits: Limits,
        defaults: Defaults,
        receive: Receive,
        send: Send,
        socket: Socket,
        dialect: Dialect = NATIVE,
    ) -> None:
        self._house = house
        self._account = account
        self._receive = receive
        self._send = send
        self._socket = socket
        self._limits = limits
        self._protocol = dialect.protocol
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()
        self._close_code: int | None = None
        self.session = Session(self, limits, defaults, clock(), dialect)

    # --- the socket ------------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Returns when the socket is closed, by whomever; nothing of it is left running."""
        writer = asyncio.create_task(self._write())
        try:
            await self._read()
        finally:
            self.session.close(clock())
            writer.cancel()
            if self._timer is not None:
                self._timer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            if (text := message.get("text")) is not None:
                self.session.receive(text, clock())
            else:
                self.session.receive_binary()
            self._changed.set()
            await asyncio.sleep(0)  # messages that came together must not keep the loop from other connections
            while self.session.congested and self._close_code is None:
                self._emptied.clear()
                await self._emptied.wait()

    async def _write(self) -> None:
        try:
            while self._close_code is None:
                await self._write_once()
            await self._send_all(self.session.poll(clock()))
            self._socket.force_close(self._close_code)
        except OSError:
            pass  # the peer is gone; the reader learns it too
        except Exception:
            logger.exception("a connection failed")
            self._socket.force_close(errors.CLOSE_INTERNAL)

    async def _write_once(self) -> None:
        now = clock()
        blocked = self._blocked()
        messages = [] if blocked else self.session.poll(now)
        self._emptied.set()
        if messages:
            await self._send_all(messages)
        if self.session.slow_reader or (blocked and self.session.overdue(now)):
            self.close(errors.CLOSE_SLOW_READER)
        elif self.session.abusive:
            self.close(errors.CLOSE_POLICY)
        if self._close_code is None:
            await self._wait(now + RETRY_S if blocked else self.session.wake_at(now))

    async def _send_all(self, messages: list[Item]) -> None:
        """A peer that takes nothing blocks here; when the stall limit has passed, it is closed."""
        cut = asyncio.get_running_loop().call_later(
            self._limits.stall_s, self._socket.force_close, errors.CLOSE_SLOW_READER
        )
        try:
            for message in messages:
                if isinstance(message, str):
                    await self._send({"type": "websocket.send", "text": message})
                elif isinstance(message, bytes):
                    await self._send({"type": "websocket.send", "bytes": message})
                else:
                    self.close(message.code)
                    return
        finally:
            cut.cancel()

    async def _wait(self, until: float) -> None:
        """Sleeps until something changes or `until` comes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if until <= clock():
            await asyncio.sleep(0)  # there is more to say: other connections first
        else:
            if until != NEVER and not self._changed.is_set():
                self._timer = call_at(until, self._changed.set)
            await self._changed.wait()
        self._changed.clear()

    def _blocked(self) -> bool:
        """Whether more bytes wait in this machine for the peer than its lead explains."""
        unacknowledged = self._socket.unacknowledged_bytes()
        if unacknowledged <= UNACKNOWLEDGED_FLOOR_BYTES:
            return False
        allowed = self.session.audio_bytes_per_second * (self.session.longest_lead_s + UNACKNOWLEDGED_S)
        return unacknowledged > UNACKNOWLEDGED_FLOOR_BYTES + allowed

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait in this machine for the peer."""
        return self._socket.unacknowledged_bytes()

    def close(self, code: int) -> None:
        """Closes the socket once what is being written has gone out."""
        if self._close_code is None:
            self._close_code = code
            self._changed.set()
            self._emptied.set()

    # --- shutdown --------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Opens nothing new; an idle connection closes at once, a busy one when its contexts have ended."""
        self.session.draining = True
        if not self.session.speaking(clock()):
            self.close(errors.CLOSE_GOING_AWAY)

    def end(self) -> None:
        """The deadline of a shutdown: what is live ends with an error."""
        self.session.end_all(Failure("overloaded", "the server is shutting down", 5.0), clock())
        self.close(errors.CLOSE_GOING_AWAY)

    # --- the stage -------------------------------------------------------------------------------------------------

    @property
    def voices(self) -> tuple[Voice, ...]:
        return self._house.synthesizer.voices if self._house.synthesizer.ready else ()

    def engines(self) -> dict[str, EngineState]:
        now, wall = clock(), time.time()
        breakers = {name: line.breaker for name, line in self._house.controller.lines.items()}
        return {
            name: EngineState(
                breaker.state.name.lower(),
                tuple(sorted(cause.value for cause in breaker.causes)),
                round(wall - (now - breaker.since), 3),
            )
            for name, breaker in breakers.items()
        }

    def realtime_only(self, voice: Voice) -> bool:
        return self._house.controller.realtime_only(voice.engine)

    def cheaper_opus(self, voice: Voice) -> bool:
        return self._house.controller.cheaper_opus(voice.engine)

    def new_id(self) -> int:
        return self._house.new_id()

    def pronounce(self, segment: Segment, voice: Voice) -> Segment:
        return self._house.lexicon.apply(segment, voice.id, voice.language)

    def open_context(self) -> Refusal | None:
        return self._house.controller.open_context(self._account.name, clock())

    def close_context(self) -> None:
        self._house.controller.close_context(self._account.name, clock())

    def take_characters(self, count: int) -> Refusal | None:
        return self._house.controller.take_characters(self._account.name, count, clock())

    def admit(
        self, ticket: int, segment: Segment, voice: Voice, style: Style, *, newcomer: bool, max_wait_s: float
    ) -> Permit | Refusal | Waiting:
        ask = Ask(
            ticket,
            voice.engine,
            self._account.name,
            self._account.priority,
            newcomer=newcomer,
            characters=len(segment.text),
            max_wait_s=max_wait_s,
            cached=self._house.is_cached(segment, style),
        )
        return self._house.admit(self, ask)

    def withdraw(self, ticket: int) -> None:
        self._house.withdraw(ticket)

    def heard_first(self, permit: Permit, wait_s: float, held_up_s: float) -> None:
        self._house.heard_first(permit, wait_s, held_up_s, self._protocol)

    def took(self, part: Part, seconds: float) -> None:
        self._house.took(part, seconds)

    def ran_dry(self, permit: Permit, seconds: float) -> None:
        self._house.ran_dry(permit, seconds)

    def track(self, key: int, form: Format, source_rate: int) -> EncoderTrack:
        def answer(packets: list[Any], length: int | None) -> None:
            self.session.encoded(key, packets, length, clock())
            self._changed.set()

        return self._house.encoders.track(form, source_rate, answer)

    def open(self, utterance: int, style: Style, *, crowding: bool) -> None:
        self._house.synthesizer.open(utterance, style, self, crowding=crowding)

    def speak(self, utterance: int, segment: Segment) -> None:
        self._house.synthesizer.speak(utterance, segment)

    def cover(self, utterance: int, until: float) -> None:
        self._house.synthesizer.cover(utterance, until)

    def hold(self, utterance: int) -> None:
        self._house.synthesizer.hold(utterance)

    def release(self, utterance: int) -> None:
        self._house.synthesizer.release(utterance)

    def close_utterance(self, utterance: int) -> None:
        self._house.synthesizer.close_utterance(utterance)

    def admitted(self, ticket: int, answer: Permit | Refusal) -> None:
        """Admission answers what waited."""
        self.session.admitted(ticket, answer, clock())
        self._changed.set()

    # --- the synthesizer's listener --------------------------------------------------------------------------------

    def on_audio(self, utterance: int, segment: Segment, speech: Speech, last: bool = True) -> None:
        self.session.audio(utterance, segment, speech, clock(), last=last)
        self._changed.set()

    def on_failed(self, utterance: int, message: str) -> None:
        self.session.failed(utterance, message, clock())
        self._changed.set()
