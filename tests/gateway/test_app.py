"""The HTTP surface of a real server, and the door of its voice stream."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from websockets.exceptions import InvalidStatus

from running import running_server
from talk import talking


def get(url: str) -> tuple[int, dict[str, str], bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status, dict(response.headers), response.read()
    except urllib.error.HTTPError as refused:
        return refused.code, dict(refused.headers), refused.read()


def test_health_tells_living_from_ready(server: str):
    assert get(f"{server}/health/live")[::2] == (200, b'{"status":"live"}')
    status, _, body = get(f"{server}/health/ready")
    told = json.loads(body)
    assert (status, told["status"], told["full"], set(told["engines"]) <= {"hibari"}) == (200, "ready", False, True)


def test_not_ready_until_the_voices_are_warm():
    command = [sys.executable, "-m", "voxgate", "serve", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        try:
            # The listener is open before the application runs, so the first answer comes while the voice is loading.
            status, headers, body = get(f"{url}/health/ready")
        finally:
            process.terminate()

    assert (status, body) == (503, b'{"status":"loading"}')
    assert headers["retry-after"] == "1"


def test_voices_are_listed(server: str):
    status, _, body = get(f"{server}/v1/voices")

    assert status == 200
    assert json.loads(body) == {
        "voices": [{"id": "heart", "language": "en-US", "engine": "hibari", "tier": "realtime", "sample_rate": 24000}]
    }


def test_the_page_and_all_it_names_are_served_and_nothing_from_elsewhere(server: str):
    status, headers, body = get(server + "/")
    named = re.findall(r'(?:src|href)="([^"#]+)"', body.decode())

    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in headers["content-security-policy"]
    assert named
    assert all(get(f"{server}/{name.removeprefix('./')}")[0] == 200 for name in named)


@pytest.mark.parametrize("path", ["/nothing", "/../pyproject.toml", "/__init__.py/../../pyproject.toml"])
def test_nothing_outside_the_page_is_served(server: str, path: str):
    assert get(server + path)[0] == 404


async def test_a_stream_elsewhere_is_not_found(server: str):
    with pytest.raises(InvalidStatus) as refused:
        async with talking(server, "/v1/streams"):
            pass

    assert refused.value.response.status_code == 404


async def test_a_wrong_default_is_refused_before_the_upgrade(server: str):
    with pytest.raises(InvalidStatus) as refused:
        async with talking(server, "/v1/stream?speed=11"):
            pass

    assert refused.value.response.status_code == 400
    assert b"speed" in refused.value.response.body


async def test_refusals_are_no_errors_and_secrets_are_in_no_log(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as stderr, running_server("--keys", "k1", "--log-level", "debug", stderr=stderr) as url:
        for _ in range(3):
            with pytest.raises(InvalidStatus):
                async with talking(url, "/v1/stream?token=hush"):
                    pass
        async with talking(url, "/v1/stream?token=hush", additional_headers={"Authorization": "Bearer k1"}) as talk:
            await talk.speak("c1", "Hello.")

    written = log.read_text()
    assert "ERROR" not in written
    assert "hush" not in written
    assert "k1" not in written
