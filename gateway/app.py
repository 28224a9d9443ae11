"""The composition root: everything is constructed here, from the settings, and nowhere else.

The ASGI application is Starlette for HTTP; `/v1/stream` is taken before it, because a voice stream wants the socket
itself and not a wrapper of it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..admission import answer as admission
from ..admission.answer import Ask
from ..synth.cache import phrases
from ..synth.cache.levels import Levels, Store
from ..synth.cache.rehearsal import rehearse
from ..synth.pool import WorkersUnavailable
from ..synth.segment import Urls
from ..synth.synthesis import Synthesis, VoiceClaimed
from ..synth.text.lexicon import LexiconError
from . import bounds, heap, lineup, supervisor, wire
from .accounts import AccountsError, Keyring
from .adapters.cartesia import CartesiaHttp
from .adapters.deepgram import DeepgramHttp
from .adapters.elevenlabs_http import ElevenLabsHttp
from .adapters.elevenlabs_http import voices as elevenlabs_voices
from .adapters.names import BadNames, VoiceNames
from .adapters.openai import OpenAi
from .adapters.sockets import Sockets
from .adapters.window import Window
from .adapters.wyoming_tcp import WyomingListener
from .config import Config, ConfigError
from .connection import Connection
from .desk import Desk, reject
from .encoding import Encoders
from .gauge import Devices, Distant, Near
from .handshake import Accepted, Doorkeeper, Rejection
from .house import House, clock
from .ledger import Report
from .metrics import Metrics, exposition_of
from .neighbours import Neighbours
from .pronunciation import Pronunciation
from .protocol import EXTENSION
from .session import Limits
from .watch import Watch

logger = logging.getLogger("voxgate")

STREAM_PATH = "/v1/stream"
LEDGER, GAUGE = "ledger", "gauge"  # the supervisor's sockets, among those of its gateways
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


@dataclass(frozen=True, slots=True)
class Member:
    """Which of several gateways one is, and the folder in which they and their supervisor find each other."""

    folder: Path
    number: int
    count: int


class App:
    """The ASGI application of one gateway process.

    `member`: where several share the port. Such a one starts up only when its voices are ready, so that it takes no
    connection it would have to refuse. Raises `ConfigError` for a setting whose fault shows only here.
    """

    def __init__(self, config: Config, *, member: Member | None = None) -> None:
        self.config = config
        self._member = member
        self._phrases = _phrases(config.phrases)
        self._caches = Levels(config.cache_bytes, _redis(config) if config.redis_url else None)
        self._pronunciation = _pronunciation(config)
        self._rehearsed = False  # every phrase has been spoken
        self.failure: str | None = None  # why this server can never speak, and had better end
        self._metrics: Metrics | None = None  # while the lifespan runs
        self._neighbours: Neighbours | None = None  # … of several
        self._doorkeeper = Doorkeeper(_keyring(config), config.origins)
        limits = Limits(
            contexts=config.max_contexts,
            message_bytes=config.max_message_bytes,
            pending_chars=config.max_pending_chars,
            context_chars=config.max_context_chars,
            messages_per_second=config.max_messages_per_second,
            stall_s=config.stall_s,
            context_idle_s=config.context_idle_s,
            urls=cast(Urls, config.urls),
        )
        self._cores = supervisor.cores()
        self._devices = lineup.devices(config)
        self._memory: Devices | None = None
        if self._devices:
            self._memory = Near() if member is None else Distant(member.folder / GAUGE)
        self._controller = bounds.controller(config, lineup.cpu_workers(config, self._cores), self._forecast)
        self._desk = Desk(self._controller, limits, ready=lambda: self._voices_ready)
        names = _voice_names(config)
        self._sockets = Sockets(self._desk, self._doorkeeper, names)
        self.wyoming = WyomingListener(self._desk, names, config.max_message_bytes)
        window = Window(self._desk, self._doorkeeper, names, config.max_message_bytes)
        self._http = Starlette(
            lifespan=self._lifespan,
            routes=[
                Route("/health/live", self._live),
                Route("/health/ready", self._ready),
                Route("/v1/voices", self._voices),
                Route("/metrics", self._scrape),
                *OpenAi(window).routes,
                *CartesiaHttp(window).routes,
                *ElevenLabsHttp(window).routes,
                *DeepgramHttp(window).routes,
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
        synthesis = lineup.lineup(self.config, self._cores, self._caches, self._on_broken)
        encoders = Encoders(threads=min(self._cores, 4))
        house = self._desk.house = House(synthesis, encoders, self._controller)
        await synthesis.start()
        start = asyncio.create_task(self._get_ready(synthesis))
        house.lexicon = self._pronunciation.lexicon
        self._metrics = Metrics(house)
        watch = Watch(house, self._metrics, self._memory, self._devices)
        background = [
            start,
            asyncio.create_task(watch.run()),
            asyncio.create_task(heap.give_back(lambda: not house.controller.utterances)),
        ]
        background.append(asyncio.create_task(self._pronunciation.follow(house)))
        if self._memory is not None:
            background.append(asyncio.create_task(self._memory.run()))
        if self._member is not None:
            ledger = Report(self._member.folder / LEDGER, self._controller.quotas)
            self._neighbours = Neighbours(self._member.folder, self._member.number, self._metrics.snapshot)
            background += [asyncio.create_task(ledger.run()), asyncio.create_task(self._neighbours.run())]
        for task in background:
            task.add_done_callback(_complain)
        try:
            if self._member is not None:
                await start
                if self.failure is not None:
                    raise RuntimeError(self.failure)
            yield
        finally:
            for task in background:
                task.remove_done_callback(_complain)
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            house.close()
            await synthesis.close()
            await self._caches.close()
            encoders.close()

    async def _get_ready(self, synthesis: Synthesis) -> None:
        """Waits for every engine, and speaks the phrase pool, so that it is there when the server becomes ready."""
        try:
            await synthesis.wait_ready()
            await self._open_lines(synthesis)
            await rehearse(synthesis, self._phrases, self._pronunciation.lexicon, cast(Urls, self.config.urls))
        except* WorkersUnavailable as problems:
            self.failure = str(problems.exceptions[0])
        except* (VoiceClaimed, ConfigError) as problems:
            self.failure = f"engines: {problems.exceptions[0]}"
            logger.error("%s", self.failure)
        except* phrases.PhrasesError as problems:
            self.failure = f"phrases: {self.config.phrases}: {problems.exceptions[0]}"
            logger.error("%s", self.failure)
        else:
            self._rehearsed = True

    async def _open_lines(self, synthesis: Synthesis) -> None:
        """Lets admission know the engines. Raises `ConfigError` for one that its device has not the memory for."""
        readings = await asyncio.to_thread(self._memory.first_readings) if self._memory is not None else {}
        for name, engine in synthesis.engines.items():
            info, reading = engine.info, readings.get(self._devices.get(name, ""))
            assert info is not None
            if reading is not None and reading.total_bytes is not None:
                workers = lineup.workers_of(self.config.engines[name], self.config, self._cores)
                gateways = 1 if self._member is None else self._member.count
                problem = lineup.oversized(info, workers * gateways, reading.total_bytes, self.config.memory_degrade)
                if problem is not None:
                    raise ConfigError(problem)
            elif name in self._devices:
                logger.warning("engines: memory of the device of %s, %s, is unknown", name, self._devices[name])
            self._controller.line(name, clock(), max_slots=info.max_slots if info.stepwise else None)

    def _on_broken(self, engine: str) -> None:
        self._controller.engine_failed(engine, clock())

    @property
    def house(self) -> House | None:
        """What all connections share, while the server runs."""
        return self._desk.house

    @property
    def connections(self) -> set[Connection]:
        """Those being served."""
        return self._desk.connections

    @property
    def _voices_ready(self) -> bool:
        return self._rehearsed and self.house is not None and self.house.synthesizer.ready

    # --- the voice stream ------------------------------------------------------------------------------------------

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        foreign = scope["path"] != STREAM_PATH
        if foreign and await self._sockets.serve(scope, _headers(scope), _address(scope), receive, send):
            return
        answer = self._admit_socket(scope)
        match answer:
            case Rejection():
                await reject(answer, receive, send, scope["extensions"][EXTENSION])
            case (Accepted() as accepted, admission.Permit() as permit):
                await self._desk.serve(
                    permit,
                    accepted.account,
                    receive,
                    send,
                    scope["extensions"][EXTENSION],
                    defaults=accepted.defaults,
                    accept={"type": "websocket.accept", "subprotocol": accepted.subprotocol},
                )

    def _admit_socket(self, scope: Scope) -> Rejection | tuple[Accepted, admission.Permit]:
        if scope["path"] != STREAM_PATH:
            return Rejection(404, f"the stream is at {STREAM_PATH}")
        examined = self._doorkeeper.examine(
            _headers(scope), scope["subprotocols"], scope["query_string"].decode(), _address(scope)
        )
        if isinstance(examined, Rejection):
            return examined
        permit = self._desk.admit(examined.account)
        return permit if isinstance(permit, Rejection) else (examined, permit)

    def _forecast(self, ask: Ask, now: float) -> float:
        """How long until the engine could begin this one without harm to those who listen."""
        return self.house.synthesizer.predicted_wait(ask.engine, ask.characters, now) if self.house else 0.0

    # --- HTTP ------------------------------------------------------------------------------------------------------

    async def _live(self, _: Request) -> Response:
        return JSONResponse({"status": "live"})

    async def _ready(self, _: Request) -> Response:
        if self._controller.draining:
            status = "draining"
        elif not self._voices_ready:
            status = "loading"
        else:
            now = clock()
            told: dict[str, Any] = {
                "status": "ready",
                "full": self._controller.is_full(now),
                "engines": {name: line.told(now) for name, line in self._controller.lines.items()},
            }
            if told["full"]:
                told["retry_after"] = self._controller.retry_after(now)
            return JSONResponse(told)
        return JSONResponse({"status": status}, 503, {"Retry-After": "1"})

    async def _scrape(self, request: Request) -> Response:
        """For whoever has a key, where keys are asked for: names of engines and devices are nobody else's business."""
        if isinstance(rejection := self._doorkeeper.authorize(dict(request.headers)), Rejection):
            return Response(rejection.message, rejection.status)
        assert self._metrics is not None
        accept = request.headers.get("accept", "")
        if self._neighbours is None:
            text, content_type = self._metrics.exposition(accept)
        else:
            told = await self._neighbours.ask_all()
            text, content_type = await asyncio.to_thread(exposition_of, told, accept)
        return Response(text, headers={"Content-Type": content_type})

    async def _voices(self, request: Request) -> Response:
        key = request.headers.get("xi-api-key")
        bearer = request.headers if key is None else {"authorization": f"Bearer {key}"}
        if isinstance(rejection := self._doorkeeper.authorize(dict(bearer)), Rejection):
            return JSONResponse({"error": {"code": "unauthorized", "message": rejection.message}}, rejection.status)
        voices = self.house.synthesizer.voices if self.house else ()
        if key is not None:
            return JSONResponse(elevenlabs_voices(voices))
        listed = [
            wire.VoiceInfo(voice.id, voice.language, voice.engine, voice.tier, voice.sample_rate) for voice in voices
        ]
        return Response(msgspec.json.encode({"voices": listed}), media_type="application/json")

    # --- shutdown --------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Refuses everything new; idle connections close, busy ones when what they speak has been sent."""
        self._controller.draining = True
        for connection in tuple(self.connections):
            connection.drain()

    def end(self) -> None:
        """Ends what still runs, each context with an error."""
        for connection in tuple(self.connections):
            connection.end()


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


def _pronunciation(config: Config) -> Pronunciation:
    try:
        return Pronunciation(Path(config.lexicon) if config.lexicon else None)
    except LexiconError as problem:
        raise ConfigError(f"lexicon: {problem}") from None


def _keyring(config: Config) -> Keyring:
    file = Path(config.accounts) if config.accounts else None
    try:
        return Keyring(
            config.keys, file, key_quota=bounds.key_quota(config), address_quota=bounds.address_quota(config)
        )
    except AccountsError as problem:
        raise ConfigError(f"accounts or keys: {problem}") from None


def _voice_names(config: Config) -> VoiceNames:
    try:
        return VoiceNames(config.voice_names)
    except BadNames as problem:
        raise ConfigError(f"voice_names: {problem}") from None


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


def _complain(task: "asyncio.Task[None]") -> None:
    """What runs beside the server should not end in a fault that nobody hears of."""
    if not task.cancelled() and (problem := task.exception()) is not None:
        logger.error("a part of the server has ended", exc_info=problem)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""
