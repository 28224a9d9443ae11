"""Engines side by side in a real server: the bundled voice on the CPU and a stepwise one that is bound to a GPU.

The GPU is a file (fake_nvml.py), read by the real NVML binding.
"""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fake_nvml import GIB, FakeNvml
from fakes.stepping import SAMPLES, STEPS_PER_WORD
from running import children_of, eventually, running_server, server_pid, with_fakes
from talk import Talk, talking

GPU = "GPU-fake-0"
POOL = GIB // 2
FAST = "degrade_dwell_s = 0.3\nrecover_dwell_s = 0.3\nopen_dwell_s = 1.2\nprobe_after_s = 1.0\nengine_failures = 2\n"
PCM = {"codec": "pcm_s16le", "sample_rate": 24000}
STORY = " ".join(f"Sentence {number} of a story that is long enough to go on." for number in range(3))
WORDS = len(STORY.split())


HIBARI = "[engines.hibari]\nworkers = 1"


def settings(folder: Path, *, pool_bytes: int = POOL, voices: str = '["tone"]', beside: str = HIBARI) -> str:
    file = folder / "voxgate.toml"
    file.write_text(
        f"""{FAST}
        {beside}
        [engines.stepping]
        factory = "stepping:make"
        device = "{GPU}"
        slots = 8
        options = {{ step_s = 0.003, pool_bytes = {pool_bytes}, voices = {voices} }}
        """
    )
    return str(file)


@dataclass
class Machine:
    """A server, and the memory of its GPU."""

    url: str
    nvml: FakeNvml

    def use(self, share: float) -> None:
        """So much of the GPU's 10 GiB is in use from now on, the pool not counted."""
        self.nvml.set(GPU, free=round((1 - share) * 10 * GIB) - POOL)

    def health(self) -> dict[str, Any]:
        answer = httpx.get(f"{self.url}/health/ready").json()
        assert answer["status"] == "ready"
        return answer["engines"]

    def voices(self) -> list[dict[str, Any]]:
        return httpx.get(f"{self.url}/v1/voices").json()["voices"]

    def state(self, engine: str = "stepping") -> str:
        return self.health()[engine]["state"]

    def metric(self, name: str, **labels: str) -> float | None:
        for family in text_string_to_metric_families(httpx.get(f"{self.url}/metrics").text):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return sample.value
        return None


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("machine")
    nvml = FakeNvml(folder)
    nvml.set(GPU, free=5 * GIB)
    with running_server("--config", settings(folder), env={**with_fakes(), **nvml.env}) as url:
        yield Machine(url, nvml)


@pytest.fixture(autouse=True)
async def half_empty(machine: Machine):
    machine.use(0.5)
    await eventually("the GPU is as it was", lambda: machine.state() == "normal")


async def speak(talk: Talk, context: str, text: str = STORY, **start: Any) -> None:
    await talk.say("start", context, **{**PCM, **start})
    await talk.say("text", context, text=text)
    await talk.say("end", context)


async def test_the_voices_of_both_are_told_and_speak_on_one_connection(machine: Machine):
    listed = machine.voices()
    assert [(voice["id"], voice["engine"]) for voice in listed] == [("heart", "hibari"), ("tone", "stepping")]

    async with talking(machine.url) as talk:
        ready = talk.heard[None].only("ready")
        assert ready["voices"] == listed
        assert {name: state["state"] for name, state in ready["limits"]["engines"].items()} == {
            "hibari": "normal",
            "stepping": "normal",
        }
        await speak(talk, "default", "Hello there, everybody.")
        await speak(talk, "tone", "Hello there, everybody.", voice="tone")
        await talk.until("done", "tone")
        while "done" not in [message["type"] for message in talk.of("default").messages]:
            await talk.receive()

    assert talk.heard["default"].only("started")["voice"] == "heart"
    assert talk.heard["tone"].only("done")["samples"] == 3 * STEPS_PER_WORD * SAMPLES
    assert len(talk.heard["tone"].pcm()) == 3 * STEPS_PER_WORD * SAMPLES


async def test_words_of_a_voice_that_comes_in_chunks_are_all_told_and_lie_within_their_sound(machine: Machine):
    async with talking(machine.url) as talk:
        heard = await talk.speak("c1", STORY, voice="tone", timestamps=True, **PCM)

    words = [word for message in heard.messages if message["type"] == "words" for word in message["words"]]
    assert [word[0] for word in words] == STORY.split()
    assert all(before[2] <= after[1] + 0.002 for before, after in itertools.pairwise(words))
    assert words[-1][2] <= heard.only("done")["samples"] / 24000


async def test_a_flush_is_answered_behind_all_chunks_it_covers(machine: Machine):
    async with talking(machine.url) as talk:
        await talk.say("start", "c1", voice="tone", lead_ms=30_000, **PCM)
        await talk.say("text", "c1", text="Four words and more")
        await talk.say("flush", "c1")
        await talk.until("flushed", "c1")

        assert sum(len(payload) for *_, payload in talk.heard["c1"].audio) == 2 * 4 * STEPS_PER_WORD * SAMPLES


async def test_a_cancel_ends_a_stepwise_voice_in_mid_segment_and_frees_its_slots(machine: Machine):
    async with talking(machine.url) as talk:
        for number in range(20):
            await speak(talk, f"c{number}", voice="tone", max_wait_ms=10_000)
        await talk.until_audio("c0")
        for number in range(20):
            await talk.say("cancel", f"c{number}")
            cancelled = await talk.until("cancelled", f"c{number}")
            assert STORY.startswith(cancelled["text"])
        await eventually(
            "all slots are idle", lambda: machine.metric("voxgate_pool_idle_bytes", engine="stepping") == POOL
        )

    assert machine.metric("voxgate_batch_width", engine="stepping") == 0
    assert machine.metric("voxgate_segments_waiting", engine="stepping") == 0


async def test_full_memory_shuts_its_engine_to_newcomers_and_breaks_nobody(machine: Machine):
    states: dict[str, list[str]] = {"stepping": [], "hibari": []}

    def walked_to(state: str) -> bool:
        health = machine.health()
        for engine, seen in states.items():
            if health[engine]["state"] not in seen[-1:]:
                seen.append(health[engine]["state"])
        return states["stepping"][-1] == state

    assert walked_to("normal")
    async with talking(machine.url) as talk, talking(machine.url) as other:
        for number in range(3):
            await speak(talk, f"tone{number}", voice="tone")
        await speak(talk, "heart", voice="heart")
        machine.use(0.95)
        await eventually("it is degraded", lambda: walked_to("degraded"))
        assert machine.metric("voxgate_admission_state", engine="stepping") == 1
        assert machine.metric("voxgate_downgrade_steps", engine="stepping", cause="memory") == 1

        await eventually("it is open", lambda: walked_to("open"))
        assert machine.metric("voxgate_utterances_active", engine="stepping") == 3
        assert machine.metric("voxgate_admission_state", engine="stepping") == 3
        assert machine.metric("voxgate_admission_cause", engine="stepping", cause="memory") == 1
        assert machine.metric("voxgate_vram_free_bytes", device=GPU) == round(0.05 * 10 * GIB) - POOL
        await speak(other, "newcomer", "Is there room?", voice="tone")
        refused = await other.until("error", "newcomer")
        assert refused["code"] == "overloaded"
        assert refused["retry_after"] > 0
        await speak(other, "beside", "Here is room.", voice="heart")
        await other.until("done", "beside")
        async with talking(machine.url) as late:
            told = late.heard[None].only("ready")["limits"]["engines"]["stepping"]
            assert (told["state"], told["causes"]) == ("open", ["memory"])

        machine.use(0.5)
        await eventually("it is half open", lambda: walked_to("half_open"))
        await speak(other, "probe", "Is there room now?", voice="tone")
        await other.until("done", "probe")
        assert walked_to("normal")
        missing = {f"tone{number}" for number in range(3)} | {"heart"}
        while missing:
            message = await talk.receive()
            assert not isinstance(message, dict) or message["type"] != "error"
            missing -= {message["context"]} if isinstance(message, dict) and message["type"] == "done" else set()

    assert states == {"stepping": ["normal", "degraded", "open", "half_open", "normal"], "hibari": ["normal"]}
    for number in range(3):
        assert len(talk.heard[f"tone{number}"].pcm()) == WORDS * STEPS_PER_WORD * SAMPLES
    assert len(talk.heard["heart"].pcm()) == talk.heard["heart"].only("done")["samples"]


async def test_scarce_memory_narrows_the_batch_to_one_and_widens_it_again(machine: Machine):
    machine.use(0.85)
    await eventually("a single slot", lambda: machine.health()["stepping"]["given_up"] == ["batch of 1"])
    async with talking(machine.url) as talk:
        for number in range(4):
            await speak(talk, f"c{number}", f"Number {number} of four.", voice="tone", max_wait_ms=20_000)
        ended, widths = 0, set[float | None]()
        while ended < 4:
            message = await talk.receive()
            if isinstance(message, dict) and message["type"] in ("done", "error"):
                assert message["type"] == "done"
                ended += 1
                widths.add(await asyncio.to_thread(machine.metric, "voxgate_batch_width", engine="stepping"))
        assert widths <= {0.0, 1.0}

    machine.use(0.5)
    await eventually("nothing is given up", lambda: machine.health()["stepping"]["given_up"] == [])
    assert machine.state() == "normal"


async def test_memory_that_cannot_be_read_trips_nothing(machine: Machine):
    def unknown() -> bool:
        return machine.metric("voxgate_vram_free_bytes", device=GPU) is None

    machine.nvml.set(GPU, free=0, error=15)  # lost, and full as far as anybody could tell
    await eventually("memory is unknown", unknown)
    async with talking(machine.url) as talk:
        await talk.speak("c1", "Nobody knows.", voice="tone", **PCM)
    machine.nvml.init(999)
    assert unknown()
    assert machine.state() == "normal"

    machine.nvml.init(0)
    machine.use(0.5)
    await eventually("memory is known again", lambda: not unknown())
    assert machine.state() == "normal"


async def test_a_worker_that_dies_fails_its_own_streams_and_the_other_engine_goes_on(machine: Machine):
    pid = server_pid(machine.url)
    async with talking(machine.url) as talk, talking(machine.url) as other:
        await speak(other, "heart", "This goes on while something breaks somewhere else.", voice="heart")
        await other.until_audio("heart")
        before = children_of(pid)
        await speak(talk, "crash", "And then comes the crash of it all.", voice="tone")
        assert (await talk.until("error", "crash"))["code"] == "engine_failed"
        await other.until("done", "heart")

        await eventually("it is replaced", lambda: len(children_of(pid)) == len(before))
        await eventually("it speaks", lambda: (machine.metric("voxgate_model_loads_total", model="stepping") or 0) > 1)
        await talk.speak("after", "And it speaks again.", voice="tone", **PCM)

    assert len(other.heard["heart"].pcm()) == other.heard["heart"].only("done")["samples"]


async def test_an_engine_that_keeps_dying_is_shut_and_the_others_are_not(machine: Machine):
    pid = server_pid(machine.url)

    def stepping_worker() -> int | None:
        return next((each for each in children_of(pid) if b"stepping:make" in cmdline(each)), None)

    for _ in range(3):
        await eventually("a worker", lambda: stepping_worker() is not None)
        if (victim := stepping_worker()) is not None:
            await eventually("it is warm", lambda: loads_or_shut(machine))
            os.kill(victim, signal.SIGKILL)
            await eventually("it is gone", lambda victim=victim: stepping_worker() != victim)
        if machine.state() == "open":
            break
    assert machine.health()["stepping"]["causes"] == ["failures"]
    assert machine.health()["hibari"]["state"] == "normal"
    async with talking(machine.url) as talk:
        await talk.speak("c1", "I am well.", voice="heart")

    await eventually("a worker", lambda: stepping_worker() is not None)
    await eventually("it may be tried", lambda: machine.state() == "half_open")
    async with talking(machine.url) as talk:
        await talk.speak("probe", "A new one, that nobody has heard before.", voice="tone", max_wait_ms=20_000, **PCM)
    await eventually("it is as before", lambda: machine.state() == "normal")


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def loads_or_shut(machine: Machine) -> bool:
    loads, restarts = (machine.metric(name, **labels) or 0 for name, labels in COUNTS)
    return loads == restarts + 1 or machine.state() == "open"


COUNTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("voxgate_model_loads_total", {"model": "stepping"}),
    ("voxgate_worker_restarts_total", {"engine": "stepping"}),
)


# --- refused at the start --------------------------------------------------------------------------------------------


def refused(folder: Path, file: str) -> str:
    """What the server says as it ends for a wrong setting."""
    nvml = FakeNvml(folder)
    nvml.set(GPU, free=9 * GIB)
    result = subprocess.run(
        [sys.executable, "-m", "voxgate", "serve", "--port", "0", "--config", file],
        env={**os.environ, **with_fakes(), **nvml.env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    return result.stderr


def test_a_pool_that_would_fill_its_device_by_itself_is_refused_by_name(tmp_path: Path):
    said = refused(tmp_path, settings(tmp_path, pool_bytes=9 * GIB, beside=""))

    assert "stepping reserves 9.0 GiB for 8 slots" in said
    assert "memory_degrade (0.8)" in said


def test_a_voice_that_two_engines_have_is_refused_by_name(tmp_path: Path):
    assert "hibari and stepping both have a voice 'heart'" in refused(
        tmp_path, settings(tmp_path, voices='["tone", "heart"]')
    )


def test_an_engine_that_cannot_be_made_is_refused_by_name(tmp_path: Path):
    file = tmp_path / "voxgate.toml"
    file.write_text('[engines.mine]\nfactory = "stepping:fail"\nworkers = 1\n')

    assert "mine do not come up: stepping:fail: RuntimeError: no weights here" in refused(tmp_path, str(file))


async def test_two_gateways_on_one_gpu_know_of_each_others_pools_and_shut_together(tmp_path: Path):
    nvml = FakeNvml(tmp_path)
    nvml.set(GPU, free=5 * GIB)
    config = settings(tmp_path, pool_bytes=3 * GIB // 2)
    with running_server("--config", config, "--gateways", "2", env={**with_fakes(), **nvml.env}) as url:
        machine = Machine(url, nvml)
        # 2 % is free, and 15 % in each of two idle pools. With its own pool alone a gateway would be over 80 %.
        for free in (200 * 2**20, 201 * 2**20, 202 * 2**20, 203 * 2**20):
            nvml.set(GPU, free=free)
            await eventually("it is read", lambda free=free: free_told(machine) == {"0": free, "1": free})
        assert states(machine) == {"0": NORMAL, "1": NORMAL}

        nvml.set(GPU, free=0, total=100 * GIB)
        await eventually("both are open", lambda: states(machine) == {"0": OPEN, "1": OPEN})


NORMAL, OPEN = 0, 3


def by_gateway(machine: Machine, name: str, **labels: str) -> dict[str, float]:
    return {
        sample.labels["gateway"]: sample.value
        for family in text_string_to_metric_families(httpx.get(f"{machine.url}/metrics").text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    }


def free_told(machine: Machine) -> dict[str, float]:
    return by_gateway(machine, "voxgate_vram_free_bytes", device=GPU)


def states(machine: Machine) -> dict[str, float]:
    return by_gateway(machine, "voxgate_admission_state", engine="stepping")
