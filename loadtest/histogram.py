"""Quantiles of any number of durations in bounded memory. Pure; histograms of several processes add up.

Buckets grow by 1 % from one to the next, as HDR histograms do it: a quantile is off by half a percent at most, the
extremes and the sum are exact. From 1 µs to 1,000 s there are about 2,100 buckets, of which only those hit are held.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

GROWTH = 1.01
_SMALLEST = 1e-6
_LOG_GROWTH = math.log(GROWTH)
_BUCKETS = 2100


@dataclass(slots=True)
class Histogram:
    counts: Counter[int] = field(default_factory=Counter)
    count: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, value: float) -> None:
        """`value` >= 0; what is below 1 µs counts as 0."""
        self.counts[_bucket(value)] += 1
        self.count += 1
        self.total += value
        self.least = min(self.least, value)
        self.most = max(self.most, value)

    def merge(self, other: "Histogram") -> None:
        self.counts.update(other.counts)
        self.count += other.count
        self.total += other.total
        self.least = min(self.least, other.least)
        self.most = max(self.most, other.most)

    def quantile(self, share: float) -> float | None:
        """The value that `share` (0 to 1) of all values do not exceed (nearest rank); None when there are none."""
        if not self.count:
            return None
        rank = max(1, math.ceil(share * self.count))
        if rank == self.count:
            return self.most
        below = 0
        for bucket in sorted(self.counts):
            below += self.counts[bucket]
            if below >= rank:
                return min(self.most, max(self.least, _middle(bucket)))
        raise AssertionError("counts do not add up")

    def bars(self, edges: list[float]) -> list[int]:
        """How many values lie between one edge and the next; what is outside goes to the nearest bar."""
        bars = [0] * (len(edges) - 1)
        for bucket, count in self.counts.items():
            middle = min(self.most, max(self.least, _middle(bucket)))
            at = sum(edge <= middle for edge in edges) - 1
            bars[min(max(at, 0), len(bars) - 1)] += count
        return bars


def _bucket(value: float) -> int:
    if value < _SMALLEST:
        return 0
    return min(_BUCKETS, 1 + int(math.log(value / _SMALLEST) / _LOG_GROWTH))


def _middle(bucket: int) -> float:
    return 0.0 if bucket == 0 else _SMALLEST * GROWTH ** (bucket - 0.5)
