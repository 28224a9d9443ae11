"""`voxgate bench afternoon`: this server beside the one that anybody writes in an afternoon, in PCM, at equal work.

That one is below: the bundled voice in a thread pool, whole sentences as PCM, nothing bounded, nothing paced. It is
what separate workers, pacing and many contexts must not cost more than.
"""

import argparse
import asyncio
import concurrent.futures
import os
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np

from ...client import VoiceError
from .bench import Figure, server, table
from .bench_capacity import Level, level

LISTENERS = (128, 256)
# The afternoon's listeners wait as long as it takes; so do these.
PATIENCE_MS = 20_000
READY = "afternoon listening on"


def register(benchmarks: Any) -> None:
    """Adds the benchmark to those of `voxgate bench`."""
    parser = benchmarks.add_parser("afternoon", help="beside forty lines with the same voice in a thread pool, in PCM")
    parser.add_argument("--duration", type=float, default=30.0, metavar="S", help="at each level (%(default)g)")
    parser.add_argument("--listeners", type=int, nargs="+", default=LISTENERS, metavar="N", help="levels (128 256)")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """The exit status: 1 when a server could not run."""
    try:
        print(table(asyncio.run(_measure(args.listeners, args.duration))))
    except KeyboardInterrupt:
        return 130
    except (VoiceError, OSError) as failed:
        print(f"voxgate bench: {failed}", file=sys.stderr)
        return 1
    return 0


async def _measure(listeners: tuple[int, ...], duration: float) -> list[Figure]:
    figures: list[Figure] = []
    for streams in listeners:
        async with _afternoon() as (url, process_id):
            figures += _figures("afternoon", await level(url, process_id, streams, duration, 7, "pcm_s16le"))
        async with server() as (url, process_id):
            heard = await level(url, process_id, streams, duration, 7, "pcm_s16le", PATIENCE_MS)
            figures += _figures("voxgate", heard)
    return figures


def _figures(name: str, heard: Level) -> list[Figure]:
    title = f"{name}, {heard.streams} listeners"
    return [
        Figure(f"{title}: gapless", heard.gapless * 100, "%"),
        Figure(f"{title}: first audio p50", heard.first_audio_p50_s * 1000, "ms"),
        Figure(f"{title}: first audio p95", heard.first_audio_p95_s * 1000, "ms"),
        Figure(f"{title}: refused or failed", heard.refused, ""),
        Figure(f"{title}: CPU per second of audio", heard.cpu_per_audio_s * 1000, "ms"),
    ]


@asynccontextmanager
async def _afternoon() -> AsyncIterator[tuple[str, int]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "voxgate.gateway.cli.bench_afternoon"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if line.startswith(READY.encode()):
                yield line.split()[-1].decode(), process.pid
                return
        raise OSError("the afternoon's server did not start")
    finally:
        process.kill()
        await process.wait()


def afternoon() -> None:
    """The afternoon's server, in forty lines: as much of the wire as a load tool needs."""
    import socket

    import uvicorn
    from hibari import Hibari
    from starlette.applications import Starlette
    from starlette.routing import WebSocketRoute
    from starlette.websockets import WebSocket, WebSocketDisconnect

    voice = Hibari()
    voice("Warm up.")
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())

    async def stream(socket: WebSocket) -> None:
        await socket.accept()
        voices = [{"id": "heart", "language": "en-US", "engine": "hibari", "tier": "realtime", "sample_rate": 24000}]
        await socket.send_json({"type": "ready", "protocol": "voxgate.v1", "voices": voices, "limits": {}})
        number, texts = 0, {}
        try:
            while True:
                message = await socket.receive_json()
                if message["type"] == "text":
                    texts[message["context"]] = texts.get(message["context"], "") + message["text"]
                elif message["type"] == "end":
                    number += 1
                    await speak(socket, message["context"], texts.pop(message["context"], ""), number)
        except WebSocketDisconnect:
            pass

    async def speak(socket: WebSocket, context: str, text: str, number: int) -> None:
        started = {"stream": number, "voice": "heart", "tier": "realtime", "codec": "pcm_s16le", "sample_rate": 24000}
        await socket.send_json(
            {"type": "started", "context": context, **started, "channels": 1, "frame_samples": 480, "pre_skip": 0}
        )
        sequence = start = 0
        for sentence in voice.split_sentences(text):
            pcm = await asyncio.get_running_loop().run_in_executor(pool, voice, sentence)
            samples = (np.clip(pcm, -1, 1) * 32767).astype(np.int16)
            header = struct.pack("!BBHIQ", 1, int(sequence == 0), number, sequence, start)
            await socket.send_bytes(header + samples.tobytes())
            sequence, start = sequence + 1, start + len(samples)
        await socket.send_json({"type": "done", "context": context, "samples": start})

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"{READY} http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    app = Starlette(routes=[WebSocketRoute("/v1/stream", stream)])
    config = uvicorn.Config(app, loop="uvloop", ws="websockets-sansio", ws_per_message_deflate=False, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    afternoon()
