"""Whether the server spoke or only repeated itself: its own count of cache look-ups, from its metrics."""

import asyncio
import re
import urllib.request
from dataclasses import dataclass

METRICS_SECONDS = 3.0
_SAMPLE = re.compile(r'^voxgate_cache_requests_total\{level="(\w+)",result="(\w+)"\} (\S+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Segments that were looked for in the caches of one gateway process, and found."""

    hits: int = 0
    misses: int = 0

    def since(self, before: "CacheUse") -> "CacheUse":
        return CacheUse(self.hits - before.hits, self.misses - before.misses)

    @property
    def share(self) -> float:
        """Of segments that were hits; 0 when none was looked for."""
        return self.hits / (self.hits + self.misses) if self.hits else 0.0


async def cache_use(url: str, key: str | None) -> CacheUse | None:
    """What the server at `url` has counted; None when it does not tell."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    address = re.sub("^ws", "http", url.rstrip("/")) + "/metrics"
    try:
        return parse(await asyncio.to_thread(_read, urllib.request.Request(address, headers=headers)))
    except (OSError, ValueError):
        return None


def parse(metrics: str) -> CacheUse:
    """A segment is looked for in one level after the other: a miss of the memory is a miss of the phrases, too."""
    counts = {(level, result): int(float(count)) for level, result, count in _SAMPLE.findall(metrics)}
    hits = sum(count for (_, result), count in counts.items() if result in ("hit", "late_hit"))
    late = sum(count for (_, result), count in counts.items() if result == "late_hit")
    return CacheUse(hits, counts.get(("memory", "miss"), 0) - counts.get(("redis", "hit"), 0) - late)


def _read(request: urllib.request.Request) -> str:
    with urllib.request.urlopen(request, timeout=METRICS_SECONDS) as answer:
        return answer.read().decode()
