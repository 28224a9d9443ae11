"""One real server for the tests that leave it as they found it."""

from collections.abc import Iterator

import pytest

from running import running_server


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """`http://127.0.0.1:PORT` of a server with the default settings."""
    with running_server() as url:
        yield url
