"""The same listeners as users of Locust: `locust -f …/loadtest/locustfile.py --host http://127.0.0.1:8080`.

Locust runs on gevent, asyncio does not; so this speaks with the blocking client of `websockets`, and shares everything
that is not a socket (messages, texts, the record of what was heard) with the load test. Locust loads this file by its
path and not as part of the package, hence the imports by full name.

Besides its own entries Locust shows, in ms: `first audio` (text sent -> first audio; failed when refused), `underrun`
(one entry each, as long as it was), `utterance` (until it was heard out) and `cancel` (until confirmed). Of speech over
HTTP: `speech first audio` and `speech underrun`.
VOXGATE_KEY, VOXGATE_CODEC, VOXGATE_TOKENS_PER_SECOND and VOXGATE_BARGE_INS shape the users.
"""

import itertools
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import gevent
import locust
import websockets.exceptions
import websockets.sync.client

import voxgate.client as client
import voxgate.client.connection as addresses
import voxgate.client.messages as wire
import voxgate.client.playout as playout
import voxgate.loadtest.corpus as corpus
import voxgate.loadtest.listening as record
import voxgate.loadtest.plan as plan

SILENCE_SECONDS = 30.0  # without a message: the utterance has failed
SPEECH_PATH = "/v1/audio/speech"
SPEECH_RATE = 24000  # of its PCM, in pieces of
SPEECH_PIECE = 480

_KEY = os.environ.get("VOXGATE_KEY")
_CODEC = os.environ.get("VOXGATE_CODEC", "opus")
_TOKENS_PER_SECOND = float(os.environ.get("VOXGATE_TOKENS_PER_SECOND", "0"))
_BARGE_INS = float(os.environ.get("VOXGATE_BARGE_INS", "0"))
_LOAD = plan.Load(streams=1 << 16, barge_ins=_BARGE_INS, seed=time.time_ns())
_numbers = itertools.count()
_HEADERS = {"Authorization": f"Bearer {_KEY}"} if _KEY else {}


class Listener(locust.User):
    """Holds a connection and hears one utterance after the other, in real time."""

    weight = 9

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._script = plan.Script(_LOAD, next(_numbers))
        self._socket: websockets.sync.client.ClientConnection | None = None
        self._held = ExitStack()
        self._contexts = itertools.count(1)

    @locust.task
    def utter(self) -> None:
        planned = self._script.next()
        text = planned.text
        try:
            socket = self._connected()
        except (OSError, websockets.exceptions.WebSocketException):
            gevent.sleep(1.0)  # told as the failure of `connect`
            return
        listening = record.Listening(len(text.text), text.pieces, time.monotonic())
        try:
            self._converse(socket, planned, listening)
            result = listening.finished(time.monotonic())
        except client.ContextError as ended:
            result = listening.ended_with(ended.code, time.monotonic())
            gevent.sleep(1.0 if ended.retry_after is None else ended.retry_after)
        except (TimeoutError, client.ProtocolError, websockets.exceptions.WebSocketException) as broken:
            result = listening.failed(type(broken).__name__, time.monotonic())
            self._disconnect()
        self._tell(listening, result)
        gevent.sleep(max(0.0, result.ended_at - time.monotonic()))

    def on_stop(self) -> None:
        self._disconnect()

    def _connected(self) -> websockets.sync.client.ClientConnection:
        if self._socket is None:
            with self._timed("connect"):
                socket = self._held.enter_context(
                    websockets.sync.client.connect(
                        addresses.stream_url(self.host or "http://127.0.0.1:8080"),
                        subprotocols=[websockets.Subprotocol(wire.PROTOCOL)],
                        compression=None,
                        proxy=None,
                        additional_headers=_HEADERS,
                    )
                )
                self._heard(socket)  # ready
                self._socket = socket
        return self._socket

    def _disconnect(self) -> None:
        self._socket = None
        self._held.close()

    def _converse(
        self, socket: websockets.sync.client.ClientConnection, planned: plan.Planned, listening: record.Listening
    ) -> None:
        context = f"c{next(self._contexts)}"
        listening.begin(time.monotonic())
        socket.send(wire.encode(wire.Start(context, codec=_CODEC, timestamps=bool(_TOKENS_PER_SECOND))), text=True)
        writing = gevent.spawn(self._write, socket, context, planned.text.text, listening)
        interrupting = None
        try:
            for event in self._events(socket, context):
                listening.receive(event, time.monotonic())
                if not isinstance(event, wire.Audio) or not event.first:
                    continue
                self._fire("first audio", listening.ttfa or 0.0)
                if (after := planned.barge_in_after) is not None:
                    interrupting = gevent.spawn_later(after, self._interrupt, socket, context, listening)
        finally:
            gevent.killall([greenlet for greenlet in (writing, interrupting) if greenlet is not None])

    def _write(
        self, socket: websockets.sync.client.ClientConnection, context: str, text: str, listening: record.Listening
    ) -> None:
        begun_at, length = time.monotonic(), 0
        for number, token in enumerate(corpus.tokens(text) if _TOKENS_PER_SECOND else [text]):
            if number:
                gevent.sleep(max(0.0, begun_at + number / _TOKENS_PER_SECOND - time.monotonic()))
            length += len(token)
            listening.wrote(length, time.monotonic())
            socket.send(wire.encode(wire.Text(context, token)), text=True)
        socket.send(wire.encode(wire.End(context)), text=True)

    def _interrupt(
        self, socket: websockets.sync.client.ClientConnection, context: str, listening: record.Listening
    ) -> None:
        socket.send(wire.encode(wire.Cancel(context, listening.cancel(time.monotonic()))), text=True)

    def _events(self, socket: websockets.sync.client.ClientConnection, context: str) -> Iterator[wire.Event]:
        """What concerns the context, up to its end. Raises `ContextError` for one that ends it, or was about it."""
        stream = None
        while True:
            data = self._heard(socket)
            if data[:1] != b"{":
                audio = wire.decode_audio(data, time.monotonic())
                if audio.stream == stream:
                    yield audio
                continue
            match wire.decode(data):
                case wire.Error(code=code, message=message, retry_after=retry_after) as error:
                    if context in (error.context, error.about):
                        raise client.ContextError(context, code, message, retry_after)
                case wire.Started(context=id) as started if id == context:
                    stream = started.stream
                    yield started
                case wire.Done(context=id) | wire.Cancelled(context=id) as end if id == context:
                    yield end
                    return
                case wire.Words(context=id) as words if id == context:
                    yield words

    @staticmethod
    def _heard(socket: websockets.sync.client.ClientConnection) -> bytes:
        return socket.recv(timeout=SILENCE_SECONDS, decode=False)

    # What Locust is told.

    def _tell(self, listening: record.Listening, result: record.Result) -> None:
        refused = result.outcome in (record.Outcome.REFUSED, record.Outcome.FAILED)
        failure = client.VoiceError(result.reason) if refused else None
        took = result.ended_at - result.began_at
        if result.ttfa is None:
            self._fire("first audio", took, failure)
        for _, begin, end in listening.owed():
            self._fire("underrun", end - begin)
        self._fire("utterance", took, failure)
        if result.cancel_to_confirmed is not None:
            self._fire("cancel", result.cancel_to_confirmed)

    def _fire(self, name: str, seconds: float, failure: Exception | None = None) -> None:
        _fire(self, name, seconds, failure)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began_at = time.monotonic()
        try:
            yield
        except Exception as failed:
            self._fire(name, time.monotonic() - began_at, failed)
            raise
        self._fire(name, time.monotonic() - began_at)


class Caller(locust.FastHttpUser):
    """What is asked over plain HTTP; speech as well, where the server offers it."""

    weight = 1
    wait_time = locust.between(0.5, 1.5)
    offers_speech: bool | None = None  # of the server: asked once, by the first user

    def on_start(self) -> None:
        self._texts = corpus.TextMaker(_LOAD.seed, next(_numbers), 1 << 16)
        if Caller.offers_speech is None:
            Caller.offers_speech = self._probe()

    @locust.task
    def look_and_hear(self) -> None:
        self.client.get("/health/ready")
        self.client.get("/v1/voices", headers=_HEADERS)
        if Caller.offers_speech:
            self._speech()

    def _speech(self) -> None:
        """Hears a text out while it comes, in real time."""
        spoken = {"input": self._texts.make("short").text, "response_format": "pcm", "voice": "alloy"}
        clock = playout.PlayoutClock(SPEECH_RATE, time.monotonic())
        with self.client.post(SPEECH_PATH, json=spoken, headers=_HEADERS, stream=True, catch_response=True) as answer:
            if answer.status_code != 200:
                return  # told as a failure
            samples = self._hear(answer.stream, clock)
            if clock.first_at is None:
                answer.failure("no audio")
                return
        _fire(self, "speech first audio", clock.time_to_first_audio or 0.0)
        for _ in range(clock.underruns):
            _fire(self, "speech underrun", clock.underrun_seconds / clock.underruns)
        gevent.sleep(max(0.0, samples / SPEECH_RATE - clock.position(time.monotonic())))

    @staticmethod
    def _hear(body: Any, clock: playout.PlayoutClock) -> int:
        """Samples of a body that is PCM."""
        samples = 0
        while piece := body.read(2 * SPEECH_PIECE):
            clock.feed(samples, time.monotonic())
            samples += len(piece) // 2
        return samples

    def _probe(self) -> bool:
        """A request without a text: a server that has the path finds fault with it, another does not know the path."""
        with self.client.post(SPEECH_PATH, json={}, headers=_HEADERS, name="probe", catch_response=True) as answer:
            offered = answer.status_code not in (0, 404, 405)
            answer.success()
        if not offered:
            logging.getLogger(__name__).warning("%s is not offered by this server: left out", SPEECH_PATH)
        return offered


def _fire(user: locust.User, name: str, seconds: float, failure: Exception | None = None) -> None:
    user.environment.events.request.fire(
        request_type="VOICE",
        name=name,
        response_time=seconds * 1000,
        response_length=0,
        exception=failure,
        context={},
    )
