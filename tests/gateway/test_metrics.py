"""What a real server tells, read as Prometheus reads it."""

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from running import running_server
from talk import talking
from voxgate.admission.answer import Ask, Outcome, Permit
from voxgate.admission.controller import Controller, Limits
from voxgate.admission.vram import Reading
from voxgate.gateway.house import House, clock
from voxgate.gateway.metrics import Metrics, exposition_of
from voxgate.synth.synthesis import Synthesis
from voxgate.synth.synthesizer import Synthesizer

NAMES = (
    *("first_audio_wait_seconds", "sessions", "streams_active", "utterances", "refusals", "underruns"),
    *("underrun_seconds", "queue_depth", "queue_wait_seconds", "batch_width", "audio_seconds", "synth_seconds"),
    *("admission_state", "concurrency_limit", "vram_free_bytes", "vram_total_bytes", "cache_requests", "model_loads"),
    *("loop_lag_seconds", "worker_restarts", "send_buffer_bytes", "stage_seconds"),
)
STAGES = "admission", "encoding", "sending", "synthesis"


Samples = dict[str, dict[tuple[str, ...], float]]


def silent_house() -> House:
    """One in which nobody speaks."""
    return House(Synthesis([Synthesizer(workers=1)]), None, Controller(Limits()))  # pyright: ignore[reportArgumentType]


def metrics(*, first_waits: tuple[float, ...]) -> Metrics:
    """Those of a gateway whose listeners waited for so long."""
    house = silent_house()
    told = Metrics(house)
    for wait_s in first_waits:
        permit = house.controller.admit(Ask(1, "hibari"), clock())
        assert isinstance(permit, Permit)
        house.heard_first(permit, wait_s, 0.0, "voxgate.v1")
        permit.release(Outcome.SERVED, clock())
    return told


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server("--workers", "1") as url:
        yield url


def exposition(url: str) -> str:
    return httpx.get(f"{url}/metrics").text


def scrape(url: str) -> Samples:
    return samples_of(exposition(url))


def samples_of(text: str) -> Samples:
    """Samples by name, then by the values of their labels, in the alphabetical order of these."""
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        samples[family.name] = {}
        for sample in family.samples:
            samples.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return samples


async def test_speech_shows_in_every_count(server: str):
    async with talking(server) as talk:
        before = scrape(server)
        await talk.speak("c1", "One sentence, and then another. ")
        await talk.speak("c2", "One sentence, and then another. ")
        after = scrape(server)

    assert before["voxgate_sessions"][()] == 1
    assert after["voxgate_utterances_total"][("served",)] - before["voxgate_utterances_total"].get(("served",), 0) == 2
    assert after["voxgate_first_audio_wait_seconds_count"][("hibari", "voxgate.v1")] == 2
    stages = after["voxgate_stage_seconds_count"], after["voxgate_stage_seconds_sum"]
    assert stages[0] == dict.fromkeys([(stage,) for stage in STAGES], 2)
    assert sum(stages[1].values()) == pytest.approx(
        after["voxgate_first_audio_wait_seconds_sum"][("hibari", "voxgate.v1")]
    )
    assert after["voxgate_audio_seconds_total"][("hibari",)] > 1.0
    assert after["voxgate_cache_requests_total"][("memory", "hit")] >= 1
    assert after["voxgate_admission_state"][("hibari",)] == 0
    assert after["voxgate_model_loads_total"][("loaded", "hibari")] == 2  # a worker, and the express one


async def test_every_name_that_is_promised_is_there_and_explained(server: str):
    async with talking(server) as talk:
        await talk.speak("c1", "So that an engine is known.")
    families = {family.name: family.documentation for family in text_string_to_metric_families(exposition(server))}

    assert [name for name in NAMES if not families.get(f"voxgate_{name}")] == []


def test_where_keys_are_asked_for_metrics_are_not_open_to_all():
    with running_server("--workers", "1", "--keys", "secret") as url:
        assert httpx.get(f"{url}/metrics").status_code == 401
        assert httpx.get(f"{url}/metrics", headers={"authorization": "Bearer secret"}).status_code == 200


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_what_several_gateways_tell_is_told_apart_and_not_added_up(accept: str):
    first, second = (metrics(first_waits=waits) for waits in ((0.04,), (0.2, 0.3)))
    text, _ = exposition_of({0: first.snapshot(), 1: None, 2: second.snapshot()}, accept)
    parse = openmetrics_families if accept else text_string_to_metric_families
    samples = {
        (sample.name, sample.labels["gateway"]): sample.value
        for family in parse(text.decode())
        for sample in family.samples
        if family.name in ("voxgate_gateway_up", "voxgate_first_audio_wait_seconds")
        if sample.name.endswith(("_up", "_count"))
    }

    assert samples == {
        ("voxgate_gateway_up", "0"): 1.0,
        ("voxgate_gateway_up", "1"): 0.0,
        ("voxgate_gateway_up", "2"): 1.0,
        ("voxgate_first_audio_wait_seconds_count", "0"): 1.0,
        ("voxgate_first_audio_wait_seconds_count", "2"): 2.0,
    }


def test_one_gateway_of_several_tells_what_it_would_tell_alone():
    alone = metrics(first_waits=(0.04,))
    joined, content_type = exposition_of({7: alone.snapshot()}, "")
    expected = {
        (name, labels): value
        for name, by_labels in samples_of(alone.exposition("")[0].decode()).items()
        for labels, value in by_labels.items()
    }
    told = [
        sample
        for family in text_string_to_metric_families(joined.decode())
        for sample in family.samples
        if family.name != "voxgate_gateway_up"
    ]

    assert content_type == alone.exposition("")[1]
    assert {sample.labels.pop("gateway") for sample in told} == {"7"}
    assert {(sample.name, tuple(sample.labels.values())): sample.value for sample in told} == expected


def test_gpu_memory_that_is_unknown_is_left_out_and_its_reading_grows_old():
    house = silent_house()
    house.devices = {
        "GPU-a": Reading("GPU-a", "Fast", 80, 20, clock()),
        "GPU-b": Reading("GPU-b", "Lost", 80, None, clock() - 60),
    }
    samples = samples_of(Metrics(house).exposition("")[0].decode())

    assert samples["voxgate_vram_free_bytes"] == {("GPU-a",): 20}
    assert samples["voxgate_vram_total_bytes"] == {("GPU-a",): 80}
    assert samples["voxgate_vram_reading_age_seconds"][("GPU-b",)] >= 60


@pytest.mark.parametrize("accept", ["text/plain;version=new", "application/openmetrics-text;version=", ";=,", "é"])
def test_who_asks_for_nonsense_is_told_in_some_way(accept: str):
    assert b"voxgate_sessions" in metrics(first_waits=()).exposition(accept)[0]


def test_it_speaks_openmetrics_to_those_who_ask(server: str):
    answer = httpx.get(f"{server}/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
