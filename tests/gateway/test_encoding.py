import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest

from voxgate.codecs.packetizer import Packet, Packetizer, choose_format
from voxgate.gateway.encoding import Encoders

FORM = choose_format("opus", 24000, 20, 24000)


@pytest.fixture
async def encoders() -> AsyncIterator[Encoders]:
    made = Encoders(threads=3)
    yield made
    made.close()


def noise(samples: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9000, 9000, samples).astype(np.int16)


class Answers:
    """Collects what a track answers until its length is told."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.calls = 0
        self.length = asyncio.get_running_loop().create_future()

    def __call__(self, packets: list[Packet], length: int | None) -> None:
        self.calls += 1
        self.packets += packets
        if length is not None:
            self.length.set_result(length)


async def test_every_track_is_encoded_in_order_whatever_the_others_do(encoders: Encoders):
    answers = [Answers() for _ in range(20)]
    tracks = [encoders.track(FORM, 24000, answer) for answer in answers]
    for turn in range(5):
        for number, track in enumerate(tracks):
            track.push(noise(1000 + turn, seed=number * 10 + turn))
    for track in tracks:
        track.finish()
    lengths = await asyncio.wait_for(asyncio.gather(*(answer.length for answer in answers)), 20)

    assert lengths == [5010] * 20
    for number, answer in enumerate(answers):
        alone = Packetizer(FORM, 24000)
        whole = np.concatenate([noise(1000 + turn, seed=number * 10 + turn) for turn in range(5)])
        assert [p.payload for p in answer.packets] == [p.payload for p in alone.push(whole) + alone.finish()]
        assert answer.calls == 6


async def test_a_short_push_is_not_kept_waiting_by_the_threads(encoders: Encoders):
    busy = [encoders.track(FORM, 24000, Answers()) for _ in range(3)]
    for track in busy:
        track.push(noise(24000 * 120, seed=1))
    answer = Answers()

    encoders.track(FORM, 24000, answer).push(noise(1440, seed=2))
    await asyncio.sleep(0)  # one turn of the loop

    assert [packet.payload for packet in answer.packets] == [
        packet.payload for packet in Packetizer(FORM, 24000).push(noise(1440, seed=2))
    ]
    for track in busy:
        track.close()


async def test_a_closed_track_answers_nothing_more(encoders: Encoders):
    closed, other = Answers(), Answers()
    track = encoders.track(FORM, 24000, closed)
    track.push(noise(48_000, 1))
    track.close()
    after = encoders.track(FORM, 24000, other)
    after.finish()
    await asyncio.wait_for(other.length, 20)

    assert closed.calls == 0
