import asyncio
import math
import socket
import sys

import pytest

from voxgate.synth.engine import EngineInfo, Steps, Voice
from voxgate.synth.link import Link
from voxgate.synth.messages import Failed, Figures, NotReady, Ready, Spoken, Synthesize, encode
from voxgate.synth.segment import Boundary, Segment, Style

VOICES = (Voice("v", "en", "e", "realtime", 24000),)
WHOLE = EngineInfo("e", "1", 24000, VOICES, 1, stepwise=False, deterministic=True)
STEPS = Steps(480, 0.01, 0.01, pool_bytes=4000)
STEPWISE = EngineInfo("e", "1", 24000, VOICES, 4, stepwise=True, deterministic=True, steps=STEPS)


class Scene:
    """A link, and the worker's end of it in the hands of the test."""

    def __init__(self, **options):
        self.ours, self.theirs = socket.socketpair()
        self.link = Link(self, seat=0, **options)
        self.ready = None
        self.replies = []
        self.lost: tuple[int, ...] | None = None

    def on_worker_ready(self, worker, info):
        self.ready = info

    def on_worker_reply(self, worker, reply):
        self.replies.append((reply, set(worker.jobs)))

    def on_worker_lost(self, worker, jobs):
        self.lost = jobs

    async def __aenter__(self):
        sleep = (sys.executable, "-c", "import time; time.sleep(60)")
        self.process = await asyncio.create_subprocess_exec(*sleep)
        self.living = asyncio.create_task(self.link.live(self.ours, self.process))
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_):
        self.theirs.close()
        await self.living
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def say(self, *replies):
        """The worker says this; returns when the link has read it."""
        loop = asyncio.get_running_loop()
        self.theirs.setblocking(False)
        await loop.sock_sendall(self.theirs, b"".join(map(encode, replies)))
        for _ in range(20):
            await asyncio.sleep(0)

    def give(self, job, deadline_s=30.0):
        segment = Segment(0, "Hello.", 0, 6, Boundary.START, Boundary.END)
        self.link.give(Synthesize(job, segment, Style("v"), -math.inf), deadline_s)


async def test_a_worker_is_ready_when_it_says_what_it_runs():
    async with Scene() as scene:
        await scene.say(Ready(STEPWISE))

        assert (scene.ready, scene.link.ready, scene.link.idle_bytes) == (STEPWISE, True, 4000)


async def test_a_worker_without_an_engine_says_why_and_is_ended():
    async with Scene() as scene:
        await scene.say(NotReady("no weights"))
        await scene.living

        assert (scene.link.cause, scene.lost) == ("no weights", ())
        assert await scene.process.wait() < 0


async def test_a_job_is_over_with_its_last_sound_or_its_failure():
    async with Scene() as scene:
        await scene.say(Ready(STEPWISE))
        scene.give(1)
        scene.give(2)
        some, last, failed = Spoken(1, b"", 0.0, False), Spoken(1, b"", 0.0, True), Failed(2, "why")
        await scene.say(some, last, failed)

        assert scene.replies == [(some, {1, 2}), (last, {2}), (failed, set())]


async def test_what_comes_of_a_job_that_was_taken_back_is_thrown_away():
    async with Scene() as scene:
        await scene.say(Ready(STEPWISE))
        scene.give(1)
        scene.link.take_back(1)
        await scene.say(Spoken(1, b"", 0.0, False), Failed(1, "why"), Figures(3, 1000))

        assert (scene.replies, scene.lost) == ([], None)
        assert (scene.link.batch, scene.link.idle_bytes) == (3, 1000)


@pytest.mark.parametrize(
    "out_of_place",
    [Spoken(7, b"", 0.0), Failed(7, "why"), Figures(1, 0), Ready(WHOLE), NotReady("late"), Spoken(1, b"", 0.0, False)],
    ids=repr,
)
async def test_a_whole_segment_worker_that_says_anything_else_is_killed(out_of_place):
    async with Scene() as scene:
        await scene.say(Ready(WHOLE))
        scene.give(1)
        await scene.say(out_of_place)
        await scene.living

        assert "protocol" in scene.link.cause
        assert scene.lost == (1,)


async def test_a_worker_that_is_silent_while_it_has_a_job_is_killed_and_its_jobs_are_lost():
    async with Scene() as scene:
        await scene.say(Ready(STEPWISE))
        scene.give(1, deadline_s=0.05)
        scene.give(2, deadline_s=0.05)
        await scene.living

        assert set(scene.lost or ()) == {1, 2}
        assert "silent" in scene.link.cause


async def test_a_worker_that_never_comes_up_is_killed():
    async with Scene(start_deadline_s=0.05) as scene:
        await scene.living

        assert not scene.link.ready
        assert "silent" in scene.link.cause


async def test_a_worker_with_nothing_to_do_may_be_silent():
    async with Scene() as scene:
        await scene.say(Ready(STEPWISE))
        scene.give(1, deadline_s=0.05)
        await scene.say(Spoken(1, b"", 0.0, True))
        scene.give(2, deadline_s=0.05)
        scene.link.take_back(2)
        done, _ = await asyncio.wait([scene.living], timeout=0.2)

        assert not done
