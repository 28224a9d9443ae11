"""uvicorn, run the way a voice stream needs it: its own listener, its own drain.

uvicorn on its own answers a SIGTERM by cutting every socket within 0.1 s; here what is being spoken is finished first,
up to a deadline.
"""

import asyncio
import gc
import logging
import math
import multiprocessing
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import msgspec
import uvicorn

from ..admission.vram import Monitor
from . import lineup, supervisor
from .app import GAUGE, LEDGER, App, Member
from .config import Config
from .gauge import Gauge
from .ledger import Ledger
from .listeners import BACKLOG, Listeners, open_all, told_of, with_certificate
from .local_service import LocalService
from .protocol import HttpProtocol, SocketProtocol

logger = logging.getLogger("voxgate")

POLL_S = 0.05
ONE_STOP_S = 1.0  # a service manager may signal every process, and the supervisor passes the same on: that is one stop
# Hardly anything here is in cycles, and a collection of everything is a pause for every listener.
GC_THRESHOLDS = 20_000, 20, 20


class Server(uvicorn.Server):
    """Drains before it shuts down. A second signal ends the drain."""

    def __init__(self, config: uvicorn.Config, app: App, listeners: Listeners, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listeners = listeners
        self._app = app
        self._listening = listening
        self._signals = 0
        self._signalled_at = -math.inf

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._listeners.tls is not None:
            listener, context = self._listeners.tls
            loop = asyncio.get_running_loop()
            self.servers.append(await loop.create_server(self._protocol, sock=listener, ssl=context, backlog=BACKLOG))
        if self._listeners.wyoming is not None:
            await self._app.wyoming.start(self._listeners.wyoming)
        self._listening()

    def _protocol(self) -> asyncio.Protocol:
        make = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg]

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if multiprocessing.parent_process() is not None:
            if sig == signal.SIGINT:
                return  # Ctrl+C reaches the whole group; the supervisor passes it on as a SIGTERM
            last, self._signalled_at = self._signalled_at, time.monotonic()
            if self._signalled_at - last < ONE_STOP_S:
                return
        self._signals += 1
        if self._signals > 1:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        self._app.wyoming.close()
        await self._drain()
        self._app.end()
        await asyncio.sleep(POLL_S)  # one turn for the errors to be written before uvicorn closes the sockets
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        return self._app.failure is not None or await super().on_tick(counter)

    async def _drain(self) -> None:
        self._app.drain()
        deadline = time.monotonic() + self._app.config.drain_s
        if self._app.connections:
            logger.info("draining %d connections", len(self._app.connections))
        while self._app.connections and time.monotonic() < deadline and not self.force_exit:
            self._app.drain()  # connections that have fallen idle close
            await asyncio.sleep(POLL_S)


def serve(config: Config) -> int:
    """Runs until a signal; the exit status. Raises `ConfigError` before anything listens."""
    _log_to_stderr(config.log_level)
    app = App(config)
    config = with_certificate(config)
    try:
        if config.gateways > 1:
            return _serve_many(config)
        listeners = open_all(config)
        listeners.plain.listen(BACKLOG)
    except OSError as problem:
        where = problem.filename or f"{config.host}:{config.port}"
        print(f"voxgate: cannot listen on {where}: {problem.strerror}", file=sys.stderr)
        return 1
    port = listeners.plain.getsockname()[1]
    _announce(told_of(msgspec.structs.replace(config, port=port)))
    return _serve_on(listeners, app, lambda: None)


def _serve_many(config: Config) -> int:
    with supervisor.reserve(config.host, config.port) as reserved:
        config = msgspec.structs.replace(config, port=reserved.getsockname()[1])
        told = told_of(config)
        with tempfile.TemporaryDirectory(prefix="voxgate-") as folder:  # of mode 700: only we may report
            services: list[LocalService] = [Ledger(Path(folder) / LEDGER)]
            if lineup.devices(config):
                services.append(Gauge(Path(folder) / GAUGE, Monitor()))
            for service in services:
                service.start()
            members = supervisor.Supervisor(
                supervisor.shares(config, supervisor.cores()), partial(serve_member, Path(folder), config.gateways)
            )
            try:
                return members.run(lambda: _announce(told))
            finally:
                for service in services:
                    service.close()


def serve_member(folder: Path, count: int, number: int, config: Config, listening: Callable[[], None]) -> int:
    """One gateway of several, in its own process; the port and `folder` are shared. Calls `listening` when it takes
    connections."""
    _log_to_stderr(config.log_level)
    app = App(config, member=Member(folder, number, count))
    return _serve_on(open_all(config, shared=True), app, listening)


def _announce(lines: list[str]) -> None:
    print(*lines, sep="\n", flush=True)


def _serve_on(listeners: Listeners, app: App, listening: Callable[[], None]) -> int:
    server = Server(
        uvicorn.Config(
            app,
            interface="asgi3",
            loop="uvloop",
            http=HttpProtocol,
            ws=SocketProtocol,
            ws_max_size=app.config.max_message_bytes,
            ws_ping_interval=None,  # a page in the background or a paused bot answers no ping, and is no less a client
            ws_per_message_deflate=False,
            lifespan="on",
            access_log=False,  # its lines show the query string
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=5,
            backlog=BACKLOG,
        ),
        app,
        listeners,
        listening,
    )
    gc.collect()
    gc.freeze()  # the program itself, some 200,000 objects
    gc.set_threshold(*GC_THRESHOLDS)
    server.run(sockets=[listeners.plain])
    return 0 if app.failure is None else 1


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s %(levelname)-7s %(name)s: %(message)s", stream=sys.stderr
    )
    # uvicorn logs each handshake with its query string, and a client's invalid UTF-8 as an error of ours.
    uvicorn_logger = logging.getLogger("uvicorn.error")
    uvicorn_logger.setLevel(logging.WARNING)
    uvicorn_logger.addFilter(lambda record: not str(record.msg).startswith("Invalid UTF-8"))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
