import json
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect

from running import free_port, running_server
from voxgate.gateway.config import Config, ConfigError
from voxgate.gateway.listeners import SEND_BUFFER_BYTES, bind, open_all, with_certificate


def test_the_listener_bounds_what_the_kernel_swallows():
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
        with accepted:
            # Linux doubles the figure it is given, for its own book-keeping.
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 2 * SEND_BUFFER_BYTES


def test_the_listener_takes_ipv6():
    with bind("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"


@pytest.fixture
def state(tmp_path, monkeypatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return str(tmp_path / "voxgate")


def test_a_certificate_is_made_once_and_kept_to_ourselves(state: str):
    config = with_certificate(Config(tls_port=1))
    made = Path(config.tls_certificate).read_text()

    assert with_certificate(Config(tls_port=1)) == config
    assert Path(config.tls_certificate).read_text() == made
    assert os.stat(config.tls_key).st_mode & 0o77 == 0
    assert config.tls_certificate.startswith(state)


def test_no_certificate_is_made_where_there_is_one_or_none_is_wanted(state: str):
    given = Config(tls_port=1, tls_certificate="mine.pem")

    assert with_certificate(given) == given
    assert with_certificate(Config()) == Config()
    assert not os.path.exists(state)


def test_a_certificate_that_is_none_is_refused_by_its_name(tmp_path):
    (tmp_path / "mine.pem").write_text("nothing")
    config = Config(port=0, tls_port=1, tls_certificate=str(tmp_path / "mine.pem"))

    with pytest.raises(ConfigError, match=r"mine\.pem"):
        open_all(config)


def test_a_port_that_is_taken_is_named():
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "voxgate", "serve", "--port", "0", "--wyoming-port", str(port)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr


async def test_the_same_server_is_behind_tls(state: str):
    port = free_port()
    with running_server("--tls-port", str(port), "--workers", "1") as url:
        trusted = ssl.create_default_context(cafile=f"{state}/certificate.pem")
        async with httpx.AsyncClient(verify=trusted) as client:
            secure = await client.get(f"https://localhost:{port}/v1/voices")
            assert secure.json() == (await client.get(f"{url}/v1/voices")).json()
        async with connect(f"wss://localhost:{port}/v1/stream", ssl=trusted) as socket:
            assert json.loads(await socket.recv())["type"] == "ready"
            await socket.send(json.dumps({"type": "text", "context": "c1", "text": "Hello."}))
            await socket.send(json.dumps({"type": "end", "context": "c1"}))
            messages = [await socket.recv()]
            while not (isinstance(messages[-1], str) and json.loads(messages[-1])["type"] == "done"):
                messages.append(await socket.recv())
        assert len([message for message in messages if isinstance(message, bytes)]) > 0


def test_settings_of_several_gateways_share_one_certificate(state: str):
    config = with_certificate(Config(tls_port=1, gateways=2))

    assert msgspec.structs.replace(config, gateways=1).tls_certificate == config.tls_certificate
