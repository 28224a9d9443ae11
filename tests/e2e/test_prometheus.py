"""A real Prometheus over a real server: it takes the rules, scrapes the metrics, and answers questions about them."""

import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from running import eventually, free_port, running_server
from talk import talking
from tree import ROOT

RULES = ROOT / "docs" / "alerts.yml"


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


def test_the_alert_rules_are_rules():
    checked = subprocess.run([tool("promtool"), "check", "rules", RULES], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    assert "6 rules found" in checked.stdout


async def test_what_was_spoken_is_what_prometheus_answers(tmp_path: Path):
    with running_server("--workers", "1") as server, prometheus(tmp_path, server) as asked:
        async with talking(server) as talk:
            for number in range(3):
                await talk.speak(f"c{number}", f"This is number {number}.")
        await eventually("three utterances", lambda: ask(asked, 'voxgate_utterances_total{outcome="served"}') == 3)

        assert (ask(asked, "voxgate_audio_seconds_total") or 0) > 2
        assert ask(asked, "voxgate_first_audio_wait_seconds_count") == 3
        with urllib.request.urlopen(f"{asked}/api/v1/rules") as answer:
            (group,) = json.load(answer)["data"]["groups"]
        assert {rule["health"] for rule in group["rules"]} <= {"ok", "unknown"}
        assert {rule["state"] for rule in group["rules"]} == {"inactive"}
