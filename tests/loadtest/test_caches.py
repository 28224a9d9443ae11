import pytest

from running import running_server
from talk import talking
from voxgate.loadtest.caches import CacheUse, cache_use, parse


def test_a_segment_that_was_looked_for_in_several_levels_is_one():
    metrics = "\n".join(
        f'voxgate_cache_requests_total{{level="{level}",result="{result}"}} {count}.0'
        for level, result, count in [
            ("phrases", "hit", 2), ("phrases", "miss", 18), ("memory", "hit", 3), ("memory", "miss", 15),
            ("memory", "late_hit", 1), ("redis", "hit", 4), ("redis", "miss", 11),
        ]
    )  # fmt: skip
    assert parse(metrics) == CacheUse(hits=10, misses=10)
    assert parse(metrics).share == 0.5
    assert parse(metrics).since(CacheUse(8, 2)) == CacheUse(2, 8)


def test_without_caches_nothing_was_a_hit():
    assert parse("") == CacheUse()
    assert CacheUse().share == 0.0


async def test_a_real_server_tells_what_it_repeated():
    with running_server("--workers", "1") as url:
        before = await cache_use(url, None)
        assert before is not None
        async with talking(url) as talk:
            for name in ("a", "b"):
                await talk.speak(name, "The very same words.")
        after = await cache_use(url, None)
    assert after is not None
    assert after.since(before) == CacheUse(hits=1, misses=1)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://127.0.0.1:1/nowhere", "not a url"])
async def test_what_cannot_be_asked_is_unknown(url: str):
    assert await cache_use(url, None) is None
