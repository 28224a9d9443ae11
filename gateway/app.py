"""The composition root: everything is constructed here, from the settings, and nowhere else.

The ASGI application is Starlette for HTTP; `/v1/stream` is taken before it, because a voice stream wants the socket
itself and not a wrapper of it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..admission import controller as admission
from ..synth.cache import phrases
from ..synth.cache.levels import Levels, Store
from ..synth.cache.rehearsal import rehearse
from ..synth.pool import WorkersUnavailable
from ..synth.synthesizer import Synthesizer
from . import supervisor, wire
from .config import Config, ConfigError
from .connection import Connection, House
from .encoding import Encoders
from .handshake import Accepted, Doorkeeper, Rejection
from .protocol import EXTENSION, SocketProtocol
from .session import Limits

logger = logging.getLogger("voxgate")

STREAM_PATH = "/v1/stream"
WEB = Path(__file__).parent.parent / "web"
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class App:
    """The ASGI application of one gateway process.

    `warm_first`: start up only when the voices are ready, so that a gateway that shares its port with others takes no
    connection it would have to refuse. Raises `ConfigError` for a setting whose fault shows only here.
    """

    def __init__(self, config: Config, *, warm_first: bool = False) -> None:
        self.config = config
        self._warm_first = warm_first
        self._phrases = _phrases(config.phrases)
        self._caches = Levels(config.cache_bytes, _redis(config) if config.redis_url else None)
        self._rehearsed = False  # every phrase has been spoken
        self.failure: str | None = None  # why this server can never speak, and had better end
        self.house: House | None = None  # while the lifespan runs
        self._doorkeeper = Doorkeeper(config.keys, config.origins)
        self._limits = Limits(
            contexts=config.max_contexts,
            message_bytes=config.max_message_bytes,
            pending_chars=config.max_pending_chars,
            context_chars=config.max_context_chars,
            messages_per_second=config.max_messages_per_second,
            stall_s=config.stall_s,
            context_idle_s=config.context_idle_s,
        )
        self._controller = admission.Controller(
            admission.Limits(
                connections=config.max_connections,
                utterances=supervisor.utterances(config, supervisor.cores()),
                segments=config.max_queued_segments,
            )
        )
        self._http = Starlette(
            lifespan=self._lifespan,
            routes=[
                Route("/health/live", self._live),
                Route("/health/ready", self._ready),
                Route("/v1/voices", self._voices),
                Mount("/", _Page(directory=WEB, html=True)),
            ],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._http(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        cores = supervisor.cores()
        workers = self.config.workers or cores
        synthesizer = Synthesizer(workers=workers, express=(workers + 1) // 2, caches=self._caches)
        encoders = Encoders(threads=min(cores, 4))
        self.house = House(synthesizer, encoders, self._controller)
        await synthesizer.start()
        rehearsal = asyncio.create_task(self._rehearse(synthesizer))
        try:
            if self._warm_first:
                await synthesizer.wait_ready()
                await rehearsal
                if self.failure is not None:
                    raise RuntimeError(self.failure)
            yield
        finally:
            rehearsal.cancel()
            await asyncio.gather(rehearsal, return_exceptions=True)
            await synthesizer.close()
            await self._caches.close()
            encoders.close()

    async def _rehearse(self, synthesizer: Synthesizer) -> None:
        """Speaks the phrase pool, so that it is there when the server becomes ready."""
        try:
            await rehearse(synthesizer, self._phrases)
        except* WorkersUnavailable as problems:
            self.failure = str(problems.exceptions[0])
        except* phrases.PhrasesError as problems:
            self.failure = f"phrases: {self.config.phrases}: {problems.exceptions[0]}"
            logger.error("%s", self.failure)
        else:
            self._rehearsed = True

    @property
    def _voices_ready(self) -> bool:
        return self._rehearsed and self.house is not None and self.house.synthesizer.ready

    # --- the voice stream ------------------------------------------------------------------------------------------

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        answer = self._admit_socket(scope)
        match answer:
            case Rejection():
                await _reject(answer, receive, send, scope["extensions"][EXTENSION])
            case (Accepted() as accepted, admission.Permit() as permit):
                outcome = admission.Outcome.DROPPED
                try:
                    await send({"type": "websocket.accept", "subprotocol": accepted.subprotocol})
                    assert self.house is not None
                    connection = Connection(
                        self.house, self._limits, accepted.defaults, receive, send, scope["extensions"][EXTENSION]
                    )
                    await connection.serve()
                    outcome = admission.Outcome.SERVED
                finally:
                    permit.release(outcome)

    def _admit_socket(self, scope: Scope) -> Rejection | tuple[Accepted, admission.Permit]:
        if scope["path"] != STREAM_PATH:
            return Rejection(404, f"the stream is at {STREAM_PATH}")
        examined = self._doorkeeper.examine(_headers(scope), scope["subprotocols"], scope["query_string"].decode())
        if isinstance(examined, Rejection):
            return examined
        if not self._voices_ready:
            return Rejection(503, "the voices are still loading", 1.0)
        match self._controller.connect():
            case admission.Refusal() as refusal:
                return Rejection(503, refusal.message, refusal.retry_after)
            case admission.Permit() as permit:
                return examined, permit

    # --- HTTP ------------------------------------------------------------------------------------------------------

    async def _live(self, _: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def _ready(self, _: Request) -> Response:
        if self._controller.draining:
            status = "draining"
        elif not self._voices_ready:
            status = "loading"
        else:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": status}, 503, {"Retry-After": "1"})

    async def _voices(self, request: Request) -> Response:
        if rejection := self._doorkeeper.authorize(dict(request.headers)):
            return JSONResponse({"error": {"code": "unauthorized", "message": rejection.message}}, rejection.status)
        voices = self.house.synthesizer.voices if self.house else ()
        listed = [
            wire.VoiceInfo(voice.id, voice.language, voice.engine, voice.tier, voice.sample_rate) for voice in voices
        ]
        return Response(msgspec.json.encode({"voices": listed}), media_type="application/json")

    # --- shutdown --------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Refuses everything new; idle connections close, busy ones when what they speak has been sent."""
        self._controller.draining = True
        for connection in self.connections:
            connection.drain()

    def end(self) -> None:
        """Ends what still runs, each context with an error."""
        for connection in self.connections:
            connection.end()

    @property
    def connections(self) -> list[Connection]:
        """Every open connection."""
        return list(self.house.connections) if self.house else []


class _Page(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(PAGE_HEADERS)
        return response


def _phrases(file: str) -> tuple[phrases.Phrase, ...]:
    try:
        return phrases.load(Path(file)) if file else ()
    except phrases.PhrasesError as problem:
        raise ConfigError(f"phrases: {problem}") from None


def _redis(config: Config) -> Store:
    """Loaded only where it is configured: the package is an extra."""
    try:
        from ..synth.cache.redis import BadUrl, RedisStore
    except ImportError:
        raise ConfigError("redis_url: the redis package is missing: pip install 'voxgate[redis]'") from None
    try:
        return RedisStore(config.redis_url, budget_s=config.redis_budget_s, ttl_s=config.redis_ttl_s)
    except BadUrl as problem:
        raise ConfigError(f"redis_url: {problem}") from None


async def _reject(rejection: Rejection, receive: Receive, send: Send, socket: SocketProtocol) -> None:
    """The HTTP answer; holds on until the socket is gone, because uvicorn logs an error for one that returns before."""
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if rejection.retry_after is not None:
        headers.append((b"retry-after", str(max(1, round(rejection.retry_after))).encode()))
    if rejection.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "websocket.http.response.start", "status": rejection.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": rejection.message.encode()})
    while not socket.disconnected:
        await receive()


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
