from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from talk import talking
from voxgate.loadtest.caches import CacheUse, cache_use, metrics_url, parse

ALL_LEVELS = (
    *(("phrases", "hit", 2), ("phrases", "miss", 18), ("memory", "hit", 3), ("memory", "miss", 15)),
    *(("memory", "late_hit", 1), ("redis", "hit", 4), ("redis", "miss", 10), ("redis", "timeout", 1)),
)


def told(*counts: tuple[str, str, float], gateway: str = "") -> str:
    """The counts as a server exposes them."""
    lines = [
        f'voxgate_cache_requests_total{{{gateway}level="{level}",result="{result}"}} {count}'
        for level, result, count in counts
    ]
    return "\n".join(["# TYPE voxgate_cache_requests_total counter", *lines, ""])


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that answers every request with these very bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("metrics", "use"),
    [
        (told(), CacheUse(0, 0)),
        (told(("memory", "hit", 1.0), ("memory", "miss", 3.0)), CacheUse(1, 3)),
        (told(("phrases", "hit", 1.0), ("phrases", "miss", 3.0)), CacheUse(1, 3)),
        (told(("redis", "hit", 1.0), ("redis", "miss", 2.0), ("redis", "busy", 1.0)), CacheUse(1, 3)),
        (told(*ALL_LEVELS), CacheUse(10, 10)),
        (told(("memory", "miss", "1.25e+06")), CacheUse(0, 1_250_000)),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_segment_that_was_looked_for_in_several_levels_is_one(metrics: str, use: CacheUse):
    assert parse(metrics) == use


def test_what_several_gateways_found_is_added_up():
    first, second = (told(("memory", "hit", 1), ("memory", "miss", 2), gateway=f'gateway="{n}",') for n in (0, 1))
    assert parse(first + second) == CacheUse(2, 4)


def test_the_share_is_that_of_the_run():
    assert CacheUse(10, 10).since(CacheUse(8, 2)) == CacheUse(2, 8)
    assert CacheUse(2, 8).share == 0.2
    assert CacheUse().share == 0.0


def test_counts_that_began_anew_tell_nothing_of_the_run():
    assert CacheUse(1, 10).since(CacheUse(8, 2)) is None


async def test_a_real_server_tells_what_it_repeated(server: str):
    before = await cache_use(server, None)
    assert before is not None
    async with talking(server) as talk:
        for name in ("a", "b"):
            await talk.speak(name, "These very same words are those of a test of caches.")
    after = await cache_use(server, None)
    assert after is not None
    assert after.since(before) == CacheUse(hits=1, misses=1)


@pytest.mark.parametrize(
    ("stream", "metrics"),
    [
        ("http://host:1", "http://host:1/metrics"),
        ("ws://host:1/v1/stream?voice=heart", "http://host:1/metrics"),
        ("wss://host/speech/v1/stream", "https://host/speech/metrics"),
    ],
)
def test_metrics_are_beside_the_stream(stream: str, metrics: str):
    assert metrics_url(stream) == metrics


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://127.0.0.1:1/nowhere", "not a url"])
async def test_what_cannot_be_asked_is_unknown(url: str):
    assert await cache_use(url, None) is None


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nothing of HTTP\r\n\r\n",
        b"HTTP/1.1 401 Unauthorized\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + told().encode(),
        b"HTTP/1.1 200 OK\r\n\r\nthe page of some other server",
        b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe",
        b"HTTP/1.1 200 OK\r\n\r\n" + told(("memory", "hit", float("inf"))).encode(),
        b"HTTP/1.1 200 OK\r\n\r\n" + told(("memory", "hit", 1)).replace("level", "other").encode(),
    ],
)
async def test_what_answers_something_else_is_unknown(answer: bytes):
    with answering(answer) as url:
        assert await cache_use(url, None) is None
