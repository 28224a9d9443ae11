"""What a real server tells, read as Prometheus reads it."""

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from running import running_server
from talk import talking

NAMES = (
    *("first_audio_wait_seconds", "sessions", "streams_active", "utterances", "refusals", "underruns"),
    *("underrun_seconds", "queue_depth", "queue_wait_seconds", "batch_width", "audio_seconds", "synth_seconds"),
    *("admission_state", "concurrency_limit", "vram_free_bytes", "vram_total_bytes", "cache_requests", "model_loads"),
    *("loop_lag_seconds", "worker_restarts", "send_buffer_bytes"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server("--workers", "1") as url:
        yield url


def exposition(url: str) -> str:
    return httpx.get(f"{url}/metrics").text


def scrape(url: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Samples by name, then by the values of their labels, in the alphabetical order of these."""
    families = text_string_to_metric_families(exposition(url))
    samples: dict[str, dict[tuple[str, ...], float]] = {}
    for family in families:
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


def test_it_speaks_openmetrics_to_those_who_ask(server: str):
    answer = httpx.get(f"{server}/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
