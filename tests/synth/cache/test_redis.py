"""Against a real Redis: well, stopped, killed, full, and filled with rubbish."""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redis_server import RedisServer, running_redis
from voxgate.synth.cache.breaker import DWELL_S, FAILURES
from voxgate.synth.cache.redis import HEADER, MOST_LOOKUPS, MOST_WRITES, NAMESPACE, BadUrl, RedisStore, pack, unpack
from voxgate.synth.speech import Speech

ENOUGH_S = 20.0  # a budget that only a Redis that never answers exceeds
SPEECH = Speech(np.arange(-500, 500, dtype=np.int16), b"12345678")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def connected(
    redis: RedisServer, clock: Clock | None = None, *, budget_s: float = ENOUGH_S, ttl_s: float = 60.0
) -> AsyncIterator[RedisStore]:
    store = RedisStore(redis.url, budget_s=budget_s, ttl_s=ttl_s, clock=clock or Clock())
    yield store
    await store.close()


async def ask(store: RedisStore, key: bytes):
    """The result of a look-up, and what it found."""
    answer = asyncio.get_running_loop().create_future()
    asked = store.fetch(key, lambda *found: answer.set_result(found))
    return await answer if asked == "asked" else (asked, None)


async def results_of(store: RedisStore, *, times: int) -> list[str]:
    return [(await ask(store, b"k"))[0] for _ in range(times)]


async def write(store: RedisStore, key: bytes) -> str:
    told = store.put(key, SPEECH)
    await store.settled()
    return told


async def test_what_one_gateway_spoke_another_finds(redis: RedisServer):
    async with connected(redis) as one, connected(redis) as other:
        await write(one, b"shared")

        result, speech = await ask(other, b"shared")

    assert result == "hit"
    assert speech is not None
    assert speech.pcm.tolist() == SPEECH.pcm.tolist()
    assert speech.pcm.dtype == np.int16
    assert speech.times == SPEECH.times


async def test_what_is_not_there_is_a_miss(redis: RedisServer):
    async with connected(redis) as store:
        assert await ask(store, b"nowhere") == ("miss", None)


async def test_entries_have_our_name_and_end(redis: RedisServer):
    async with connected(redis, ttl_s=100.0) as store:
        await write(store, b"named")

    assert 90_000 < redis.client.pttl(NAMESPACE + b"named") <= 100_000  # pyright: ignore[reportOperatorIssue]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"rubbish",
        pack(SPEECH)[:-1],
        pack(SPEECH)[:-2],
        pack(SPEECH) + b"\0\0",
        HEADER.pack(99, 2, 0, 0) + b"\0\0",
        struct.pack("!HII", 1, 2, zlib.crc32(b"\0\0")) + b"\0\0",
        b"\0" * 10_000,
    ],
    ids=["empty", "short", "torn", "cut", "longer", "another version", "the version before", "zeros"],
)
async def test_rubbish_is_not_played_and_is_replaced(redis: RedisServer, value: bytes):
    redis.client.set(NAMESPACE + b"rubbish", value)
    async with connected(redis) as store:
        assert await ask(store, b"rubbish") == ("damaged", None)
        await write(store, b"rubbish")
        assert (await ask(store, b"rubbish"))[0] == "hit"


async def test_a_value_of_another_kind_is_an_error_and_no_more(redis: RedisServer):
    redis.client.lpush(NAMESPACE + b"list", "a")
    async with connected(redis) as store:
        assert await ask(store, b"list") == ("error", None)
        assert store.reading


@given(st.lists(st.integers(-(2**15), 2**15 - 1), max_size=50), st.binary(max_size=20))
def test_what_is_packed_is_unpacked(samples: list[int], times: bytes):
    speech = unpack(pack(Speech(np.array(samples, np.int16), times)))

    assert speech is not None
    assert (speech.pcm.tolist(), speech.times) == (samples, times)
    assert not speech.pcm.flags.writeable


@given(st.data(), st.integers(1, 255))
def test_every_damaged_byte_is_seen(data: st.DataObject, flip: int):
    value = bytearray(pack(SPEECH))
    value[data.draw(st.integers(0, len(value) - 1))] ^= flip

    assert unpack(bytes(value)) is None


async def test_a_stopped_one_is_given_up_on_then_left_alone_then_found_again(own_redis: RedisServer, clock: Clock):
    async with connected(own_redis, clock, budget_s=0.05) as store:
        own_redis.stop()
        assert await results_of(store, times=FAILURES + 2) == [*["timeout"] * FAILURES, "open", "open"]

        own_redis.resume()
        own_redis.client.ping()
        results = []
        while not store.reading:  # a probe on a busy machine may take longer than the budget
            clock.now += DWELL_S[1]
            results += await results_of(store, times=1)
        assert results[-1] == "miss"


async def test_one_that_is_killed_and_comes_back_is_found_again(own_redis: RedisServer, clock: Clock):
    async with connected(own_redis, clock) as store:
        assert await results_of(store, times=1) == ["miss"]
        own_redis.kill()
        assert await results_of(store, times=FAILURES + 1) == [*["error"] * FAILURES, "open"]

        own_redis.start()
        clock.now += DWELL_S[0]
        assert await results_of(store, times=1) == ["miss"]
        assert await write(store, b"k") == "sent"
        assert await results_of(store, times=1) == ["hit"]


async def test_a_full_one_is_not_written_to_any_more_and_still_read(own_redis: RedisServer):
    async with connected(own_redis) as store:
        await write(store, b"early")
        own_redis.fill()
        told = [await write(store, b"%d" % number) for number in range(FAILURES + 1)]

        assert told == [*["sent"] * FAILURES, "open"]
        assert not store.writing
        assert (await ask(store, b"early"))[0] == "hit"


async def test_more_than_so_many_at_once_are_not_sent(own_redis: RedisServer):
    answers = []
    async with connected(own_redis) as store:
        own_redis.stop()
        looked = [store.fetch(b"k", lambda *found: answers.append(found)) for _ in range(MOST_LOOKUPS + 2)]
        written = [store.put(b"k", SPEECH) for _ in range(MOST_WRITES + 2)]
        own_redis.resume()
        await store.settled()

    assert looked == [*["asked"] * MOST_LOOKUPS, "busy", "busy"]
    assert written == [*["sent"] * MOST_WRITES, "busy", "busy"]
    assert len(answers) == MOST_LOOKUPS
    assert {result for result, _ in answers} <= {"hit", "miss"}


async def test_closing_does_not_wait_for_an_answer(own_redis: RedisServer):
    async with connected(own_redis) as store:
        own_redis.stop()
        store.fetch(b"k", lambda *found: None)
        store.put(b"k", SPEECH)
        async with asyncio.timeout(ENOUGH_S / 2):
            await store.close()


@pytest.mark.parametrize("url", ["nowhere", "http://127.0.0.1", "redis://host:port"])
def test_what_is_no_address_is_refused(url: str):
    with pytest.raises(BadUrl):
        RedisStore(url, budget_s=1.0, ttl_s=1.0)
