"""Whether the server spoke or only repeated itself: its own count of cache look-ups, from its metrics."""

import asyncio
import re
import urllib.request
from collections import Counter
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlsplit, urlunsplit

from ..client.connection import STREAM_PATH, stream_url

METRICS_SECONDS = 3.0
METRICS_BYTES = 16 << 20  # far more than 256 gateways tell
_FAMILY = "# TYPE voxgate_cache_requests_total counter"
_SAMPLE = re.compile(r"^voxgate_cache_requests_total\{(.*)\} (\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_LEVELS = "phrases", "memory", "redis"  # in the order in which they are asked


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Segments that were looked for in the caches of a server, all its gateways together, and found."""

    hits: int = 0
    misses: int = 0

    def since(self, before: "CacheUse") -> "CacheUse | None":
        """None where the counts began anew meanwhile."""
        since = CacheUse(self.hits - before.hits, self.misses - before.misses)
        return None if min(since.hits, since.misses) < 0 else since

    @property
    def share(self) -> float:
        """Of segments that were hits; 0 when none was looked for."""
        return self.hits / (self.hits + self.misses) if self.hits else 0.0


async def cache_use(url: str, key: str | None) -> CacheUse | None:
    """What the server at `url` has counted; None when it does not tell."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        request = urllib.request.Request(metrics_url(url), headers=headers)
        return parse(await asyncio.to_thread(_read, request))
    except (OSError, ValueError, ArithmeticError, LookupError, HTTPException):  # whatever may answer there
        return None


def metrics_url(url: str) -> str:
    """Where the server that streams at `url` has its metrics. Raises `ValueError`."""
    scheme, address, path, *_ = urlsplit(stream_url(url))
    return urlunsplit((scheme.replace("ws", "http"), address, f"{path.removesuffix(STREAM_PATH)}/metrics", "", ""))


def parse(metrics: str) -> CacheUse | None:
    """A segment is looked for in one level after the other: so many were looked for as were in the first."""
    if _FAMILY not in metrics:
        return None
    counts: Counter[tuple[str, str]] = Counter()
    for labels, count in _SAMPLE.findall(metrics):
        told = dict(_LABEL.findall(labels))
        counts[told["level"], told["result"]] += int(float(count))
    hits = sum(count for (_, result), count in counts.items() if result in ("hit", "late_hit"))
    asked = Counter[str]()
    for (level, result), count in counts.items():
        asked[level] += count if result != "late_hit" else 0  # of a segment that was a miss before
    looked_for = next((asked[level] for level in _LEVELS if asked[level]), 0)
    return CacheUse(hits, looked_for - hits)


def _read(request: urllib.request.Request) -> str:
    with urllib.request.urlopen(request, timeout=METRICS_SECONDS) as answer:
        text = answer.read(METRICS_BYTES).decode()
        if answer.length:
            raise ValueError("the answer was cut off")
        return text
