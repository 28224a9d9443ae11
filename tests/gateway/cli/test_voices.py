import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from voxgate.gateway.cli import main
from voxgate.gateway.cli.voices import voices_url

HEART = {"id": "heart", "language": "en-US", "engine": "hibari", "tier": "realtime", "sample_rate": 24000}
DEEP = {"id": "deep", "language": "de", "engine": "other", "tier": "quality", "sample_rate": 48000, "mood": "grim"}


@contextmanager
def answering(status: int, body: object) -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """A server that gives one answer to everything: its address, and the paths and keys it saw."""
    seen = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers.get("Authorization")))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_voices_are_a_table(capsys):
    with answering(200, {"voices": [HEART, DEEP]}) as (url, seen):
        assert main(["voices", "--url", url, "--key", "secret"]) == 0

    assert capsys.readouterr().out.splitlines() == [
        "id     language  engine  tier      sample_rate",
        "heart  en-US     hibari  realtime  24000",
        "deep   de        other   quality   48000",
    ]
    assert seen == [("/v1/voices", "Bearer secret")]


def test_json_is_what_the_server_said(capsys):
    with answering(200, {"voices": [DEEP]}) as (url, _):
        assert main(["voices", "--url", url.replace("http", "ws"), "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == {"voices": [DEEP]}


@pytest.mark.parametrize(
    ("status", "body", "told"), [(401, {}, "401"), (200, [], "list of voices"), (200, {"voices": 3}, "list of voices")]
)
def test_another_answer_is_one_line_and_exit_1(capsys, status, body, told):
    with answering(status, body) as (url, _):
        assert main(["voices", "--url", url]) == 1

    errors = capsys.readouterr().err
    assert told in errors
    assert errors.count("\n") == 1


def test_no_server_is_one_line_and_exit_1(capsys):
    assert main(["voices", "--url", "http://127.0.0.1:1"]) == 1

    assert capsys.readouterr().err == "voxgate voices: http://127.0.0.1:1/v1/voices: [Errno 111] Connection refused\n"


def test_what_is_no_address_is_a_usage_error(capsys):
    assert main(["voices", "--url", "nowhere"]) == 2


def test_the_list_is_beside_the_stream():
    assert voices_url("wss://host:8443/v1/stream?voice=heart") == "https://host:8443/v1/voices"
