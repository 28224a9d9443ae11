"""The way in for HTTP: a real server with a key, asked through the one path that is plain enough to show it."""

from collections.abc import Iterator

import httpx
import pytest

from running import running_server

PATH = "/v1/audio/speech"


@pytest.fixture(scope="module")
def locked() -> Iterator[str]:
    with running_server("--keys", "k1", "--workers", "1", "--max-message-bytes", "1000") as url:
        yield url


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer k1"}, {"X-API-Key": "k1"}, {"xi-api-key": "k1"}])
def test_a_key_opens_wherever_it_is_put(locked: str, headers: dict[str, str]):
    assert httpx.post(locked + PATH, json={"input": "Hello."}, headers=headers, timeout=30).status_code == 200


def test_without_a_key_nothing_is_read(locked: str):
    assert httpx.post(locked + PATH, content=b"x" * 5000).status_code == 401
    assert httpx.get(locked + "/v1/audio/voices", headers={"Authorization": "Bearer k2"}).status_code == 401


def test_a_page_from_elsewhere_is_refused_and_one_of_ours_is_not(locked: str):
    def asked(origin: str) -> int:
        headers = {"Authorization": "Bearer k1", "Origin": origin}
        return httpx.post(locked + PATH, json={"input": "Hello."}, headers=headers, timeout=30).status_code

    assert (asked("http://elsewhere.example"), asked(locked)) == (403, 200)


def test_a_body_is_bounded_however_it_comes(locked: str):
    headers = {"Authorization": "Bearer k1"}

    assert httpx.post(locked + PATH, content=b"x" * 1001, headers=headers).status_code == 413
    assert httpx.post(locked + PATH, content=iter([b"x" * 900] * 50), headers=headers).status_code == 413
    assert httpx.post(locked + PATH, content=b"x" * 1000, headers=headers).status_code == 400
