import asyncio
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from voxgate.synth.engine import Setup
from voxgate.synth.pool import Pool, WorkersUnavailable
from voxgate.synth.segment import Boundary, Segment, Style

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEART = Style("heart")
LONG = "She opened the window, looked at the rain for a while, and then went back to her book without a word. "
TESTS = Path(__file__).parents[1]
SOON = 0.05, 0.1  # seconds of back-off


class Recorder:
    """What the pool reports, by job."""

    def __init__(self):
        self.outcomes = {}
        self.broken = 0
        self.changed = asyncio.Event()

    def on_idle(self):
        self.changed.set()

    def on_spoken(self, job, speech, compute_s, last):
        if not last:
            return self.changed.set()
        self.outcomes[job] = speech.pcm
        self.changed.set()

    def on_failed(self, job, message):
        self.outcomes[job] = message
        self.changed.set()

    def on_broken(self):
        self.broken += 1

    async def until(self, condition):
        async with asyncio.timeout(30):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def outcome(self, job):
        await self.until(lambda: job in self.outcomes)
        return self.outcomes.pop(job)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared():
    recorder = Recorder()
    pool = Pool(recorder, workers=2, nice=0, job_deadline_s=2.0, back_off_s=SOON)
    pool.start()
    assert not pool.ready
    await pool.wait_ready()
    yield pool, recorder
    await pool.close()


@pytest_asyncio.fixture(loop_scope="module")
async def pool(shared):
    """The pool with both of its workers idle."""
    pool, recorder = shared
    await recorder.until(lambda: pool.idle == 2)
    return pool


@pytest.fixture
def recorder(shared):
    return shared[1]


def segment(text):
    return Segment(0, text, 0, len(text), Boundary.START, Boundary.END)


def niceness(pool):
    """How many steps each worker stands behind us, sorted."""
    return sorted(os.getpriority(os.PRIO_PROCESS, pid) - os.nice(0) for pid in pool.pids)


async def test_a_warmed_pool_declares_the_engine(pool):
    assert pool.ready
    assert [voice.id for voice in pool.info.voices] == ["heart"]


async def test_every_worker_speaks_the_same_samples(pool, recorder):
    one, other = pool.submit(segment("One and the same."), HEART), pool.submit(segment("One and the same."), HEART)
    assert pool.idle == 0

    pcm = await recorder.outcome(one)

    assert pcm.dtype == np.int16
    assert len(pcm) > 12000
    assert np.array_equal(await recorder.outcome(other), pcm)


async def test_a_refused_segment_costs_no_worker(pool, recorder):
    workers, broken = pool.pids, recorder.broken

    assert await recorder.outcome(pool.submit(segment("Hi."), Style("nobody"))) == "unknown voice 'nobody'"
    assert (pool.pids, recorder.broken) == (workers, broken)


async def test_a_killed_worker_fails_its_job_and_is_replaced_while_others_go_on(pool, recorder):
    restarts, victim, broken = pool.restarts, pool.pids[0], recorder.broken
    jobs = [pool.submit(segment(LONG * 5), HEART), pool.submit(segment(LONG * 5), HEART)]

    os.kill(victim, signal.SIGKILL)

    outcomes = [await recorder.outcome(job) for job in jobs]
    assert sorted(isinstance(outcome, str) for outcome in outcomes) == [False, True]
    assert "the engine worker died" in [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert pool.ready
    await recorder.until(lambda: pool.idle == 2)
    assert victim not in pool.pids
    assert (pool.restarts, recorder.broken) == (restarts + 1, broken + 1)


async def test_an_idle_worker_that_dies_is_replaced_before_it_gets_work(pool, recorder):
    victim = pool.pids[0]

    os.kill(victim, signal.SIGKILL)

    await recorder.until(lambda: victim not in pool.pids and len(pool.pids) == 2)
    assert pool.idle == 2
    jobs = [pool.submit(segment("Both are here."), HEART) for _ in range(2)]
    assert all([len(await recorder.outcome(job)) > 12000 for job in jobs])


async def test_a_worker_that_falls_silent_is_killed_and_replaced(pool, recorder):
    silent = pool.pids
    for pid in silent:
        os.kill(pid, signal.SIGSTOP)
    job = pool.submit(segment("Is anybody there?"), HEART)

    assert await recorder.outcome(job) == "the engine worker died"

    for pid in set(silent) & set(pool.pids):
        os.kill(pid, signal.SIGCONT)
    await recorder.until(lambda: pool.idle == 2)
    assert len(set(silent) & set(pool.pids)) == 1


async def test_an_express_worker_takes_the_core_from_the_bulk_and_is_replaced_as_one():
    recorder = Recorder()
    pool = Pool(recorder, workers=1, nice=3, express=1, back_off_s=SOON)
    pool.start()
    try:
        await pool.wait_ready()
        assert (pool.idle, pool.idle_express) == (1, 1)
        bulk = pool.submit(segment("All in good time."), HEART)
        assert (pool.idle, pool.idle_express) == (0, 1)
        express = pool.submit(segment("At once."), HEART, express=True)
        assert (pool.idle, pool.idle_express) == (0, 0)
        assert niceness(pool) == [0, 3]
        assert all([len(await recorder.outcome(job)) > 6000 for job in (bulk, express)])

        urgent = next(pid for pid in pool.pids if os.getpriority(os.PRIO_PROCESS, pid) == os.nice(0))
        os.kill(urgent, signal.SIGKILL)
        await recorder.until(lambda: urgent not in pool.pids and len(pool.pids) == 2)
        assert (pool.idle, pool.idle_express) == (1, 1)
        assert niceness(pool) == [0, 3]
    finally:
        await pool.close()


async def test_workers_that_never_come_up_are_given_up():
    pool = Pool(Recorder(), workers=2, nice=0, back_off_s=SOON, command=(sys.executable, "-c", "raise SystemExit(3)"))
    pool.start()

    with pytest.raises(WorkersUnavailable, match="exit status 3"):
        await pool.wait_ready()

    assert not pool.ready
    await pool.close()


@pytest.mark.parametrize("sends", [r"b'\xff' * 8", r"b'\x00\x00\x00\x01\xc1'", r"b'\x00\x00\x00\x05\x93\xa1x\x01\x02'"])
async def test_a_worker_out_of_protocol_is_killed(sends):
    script = f"import socket, sys, time; socket.socket(fileno=int(sys.argv[1])).sendall({sends}); time.sleep(60)"
    pool = Pool(Recorder(), workers=1, nice=0, back_off_s=SOON, command=(sys.executable, "-c", script))
    pool.start()

    with pytest.raises(WorkersUnavailable, match="broke the protocol"):
        await pool.wait_ready()

    await pool.close()


async def test_closing_ends_every_process():
    pool = Pool(Recorder(), workers=1, nice=0)
    pool.start()
    await pool.wait_ready()
    pids = pool.pids

    await pool.close()

    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not pool.ready


async def test_jobs_of_a_stepwise_engine_are_spread_over_its_workers_and_one_more_waits_at_each_door(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))
    recorder = Recorder()
    setup = Setup("stepping", "fakes.stepping:make", slots=2, options={"step_s": 0.002})
    pool = Pool(recorder, workers=2, nice=0, setup=setup, back_off_s=SOON)
    pool.start()
    try:
        await pool.wait_ready()
        assert (pool.idle, pool.slots) == (6, 4)
        long = segment(" ".join(["again"] * 100))
        jobs = [pool.submit(long, Style("tone")) for _ in range(6)]
        assert pool.idle == 0
        await recorder.until(lambda: pool.batch == 4)  # two of each worker

        assert pool.cancel(jobs[0])
        assert not pool.cancel(jobs[0])
        assert pool.idle == 1
        pool.narrow(1)
        assert (pool.idle, pool.slots) == (0, 2)
        os.kill(pool.pids[0], signal.SIGKILL)
        await recorder.until(lambda: "the engine worker died" in recorder.outcomes.values())
        assert jobs[0] not in recorder.outcomes
        assert pool.alive == 1
    finally:
        await pool.close()
