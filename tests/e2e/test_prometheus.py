"""A real Prometheus over a real server: it takes the rules, scrapes the metrics, and answers questions about them."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from running import eventually, free_port, running_server
from talk import talking
from tree import ROOT

RULES = ROOT / "docs" / "alerts.yml"
Series = dict[str, str]  # what is scraped, in the notation of promtool's tests


def tool(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, f"{name} is missing: scripts/test installs it"
    return path


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    config = folder / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: 250ms, scrape_timeout: 200ms, evaluation_interval: 250ms}}\n"
        f"rule_files: [{RULES}]\n"
        f"scrape_configs: [{{job_name: voxgate, static_configs: [{{targets: ['{target.removeprefix('http://')}']}}]}}]\n"
    )
    url = f"127.0.0.1:{free_port()}"
    command = [
        tool("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={url}", "--log.level=warn",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://{url}"
        finally:
            process.terminate()


def ask(url: str, query: str) -> float | None:
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}") as answer:
            result = json.load(answer)["data"]["result"]
    except urllib.error.URLError:
        return None
    return float(result[0]["value"][1]) if result else None


def states_of_rules(url: str) -> set[tuple[str, str]]:
    """State and health of every rule there is."""
    with urllib.request.urlopen(f"{url}/api/v1/rules") as answer:
        (group,) = json.load(answer)["data"]["groups"]
    return {(rule["state"], rule["health"]) for rule in group["rules"]}


def waits(name: str, over_s: float, share: str) -> Series:
    """A histogram in which so many of a hundred a minute are over a limit."""
    return {
        f'{name}_bucket{{instance="a",le="{over_s}"}}': f"0+{100 - int(share)}x30",
        f'{name}_bucket{{instance="a",le="{over_s * 2}"}}': "0+100x30",
        f'{name}_bucket{{instance="a",le="+Inf"}}': "0+100x30",
    }


# Samples, one a minute: 0x3 is four zeros, 0+5x3 is 0 5 10 15, _ is none.
UP = {'up{job="j",instance="a"}': "1x30"}
FREE = 'voxgate_vram_free_bytes{device="GPU-a",job="j",instance="a"}'
AGE = 'voxgate_vram_reading_age_seconds{device="GPU-a",job="j",instance="a"}'
SPOKEN = {'voxgate_utterances_total{outcome="served"}': "0+100x30"}
FIRES: list[tuple[str, Series]] = [
    ("VoxgateEngineShut", {'voxgate_admission_state{engine="hibari"}': "0x9 3x20"}),
    ("VoxgateUnderruns", {f'voxgate_underruns_total{{gateway="{number}"}}': "0+4x30" for number in (0, 1)}),
    ("VoxgateRefusing", {'voxgate_refusals_total{reason="utterances"}': "0+30x30", **SPOKEN}),
    ("VoxgateSlowFirstAudio", waits("voxgate_first_audio_wait_seconds", 0.25, share="6")),
    ("VoxgateLoopLag", waits("voxgate_loop_lag_seconds", 0.05, share="2")),
    ("VoxgateWorkersDie", {"voxgate_worker_restarts_total": "0x18 1 2 3x9"}),
    ("VoxgateGatewayGone", {'voxgate_gateway_up{gateway="1"}': "1x9 0x20"}),
    ("VoxgateGpuMemoryUnknown", {AGE: "0x9 60x20"}),
    ("VoxgateGpuMemoryUnknown", {FREE: "20x9", AGE: "0x30", **UP}),
]
QUIET: list[Series] = [
    {'voxgate_admission_state{engine="hibari"}': "1x30"},
    {f'voxgate_underruns_total{{gateway="{number}"}}': "0+2x30" for number in (0, 1)},
    {'voxgate_refusals_total{reason="quota"}': "0+30x30", **SPOKEN},
    {'voxgate_refusals_total{reason="utterances"}': "0+10x30", **SPOKEN},
    waits("voxgate_first_audio_wait_seconds", 0.25, share="4"),
    waits("voxgate_loop_lag_seconds", 0.05, share="0"),
    {"voxgate_worker_restarts_total": "0x18 1x11"},
    {AGE: "0x30", **UP},  # it never told its memory
    {FREE: "20x9", AGE: "0x9", 'up{job="j",instance="a"}': "1x9 0x20"},  # the server is down
]


def firing(folder: Path, series: Series, expected: str | None) -> subprocess.CompletedProcess[str]:
    """Whether this and nothing else fires after half an hour of it, by promtool."""
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "30m",
                "exp_samples": [{"labels": f'{{alertname="{expected}"}}', "value": 1}] if expected else [],
            }
        ],
    }
    file = folder / "test.json"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    return subprocess.run([tool("promtool"), "test", "rules", file], capture_output=True, text=True)


def test_the_alert_rules_are_rules():
    checked = subprocess.run([tool("promtool"), "check", "rules", RULES], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "8 rules found" in checked.stdout


@pytest.mark.parametrize(("alert", "series"), FIRES, ids=[alert for alert, _ in FIRES])
def test_an_alert_fires_when_it_should(tmp_path: Path, alert: str, series: Series):
    checked = firing(tmp_path, series, alert)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("series", QUIET, ids=lambda series: next(iter(series)))
def test_no_alert_fires_when_all_is_well(tmp_path: Path, series: Series):
    checked = firing(tmp_path, series, None)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_is_seen_to_fire():
    assert set(re.findall(r"- alert: (\w+)", RULES.read_text())) == {alert for alert, _ in FIRES}


async def test_what_was_spoken_is_what_prometheus_answers(tmp_path: Path):
    with running_server("--workers", "1") as server, prometheus(tmp_path, server) as asked:
        async with talking(server) as talk:
            for number in range(3):
                await talk.speak(f"c{number}", f"This is number {number}.")
        await eventually("three utterances", lambda: ask(asked, 'voxgate_utterances_total{outcome="served"}') == 3)

        assert (ask(asked, "voxgate_audio_seconds_total") or 0) > 2
        assert ask(asked, "voxgate_first_audio_wait_seconds_count") == 3
        assert states_of_rules(asked) <= {("inactive", "ok"), ("inactive", "unknown")}
