"""The caches of a server as synthesis sees them: phrases, then memory, then a shared store that needs asking.

Owns which level is asked when, what goes where, and the counts. Knows neither utterances nor how a store is reached.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .memory import Memory

Pcm = NDArray[np.int16]
Answer = Callable[[Pcm | None], None]


class Store(Protocol):
    """A cache behind a wire (redis.py). Its calls return at once, on the event loop."""

    def fetch(self, key: bytes, answer: Callable[[str, Pcm | None], None]) -> str:
        """ "asked": `answer(result, pcm)` will be called once, later and within the budget; else why it was not."""
        ...

    def put(self, key: bytes, pcm: Pcm) -> str:
        """ "sent", or why it was not: nothing waits for room."""
        ...

    async def close(self) -> None: ...


class Levels:
    """`requests[level, result]` counts look-ups; a segment is looked for in "phrases", "memory" and "redis" in turn."""

    def __init__(self, memory_bytes: int = 0, store: Store | None = None) -> None:
        self._phrases: dict[bytes, Pcm | None] = {}  # None: to be kept when it is spoken
        self._memory = Memory(memory_bytes) if memory_bytes else None
        self._store = store
        self.requests: Counter[tuple[str, str]] = Counter()
        self.writes: Counter[str] = Counter()

    def pin(self, keys: Iterable[bytes]) -> None:
        """What is put under these is never evicted."""
        for key in keys:
            self._phrases.setdefault(key, None)

    @property
    def unspoken(self) -> list[bytes]:
        """Pinned keys that nothing has been put under."""
        return [key for key, pcm in self._phrases.items() if pcm is None]

    @property
    def pinned_bytes(self) -> int:
        return sum(pcm.nbytes for pcm in self._phrases.values() if pcm is not None)

    @property
    def memory_bytes(self) -> int:
        return self._memory.bytes if self._memory is not None else 0

    def holds(self, key: bytes) -> bool:
        """Whether `get` would find it; counts as no look-up."""
        return self._phrases.get(key) is not None or (self._memory is not None and key in self._memory)

    def get(self, key: bytes) -> Pcm | None:
        """What this process has."""
        if self._phrases:
            pcm = self._phrases.get(key)
            self._count("phrases", pcm)
            if pcm is not None:
                return pcm
        if self._memory is not None:
            pcm = self._memory.get(key)
            self._count("memory", pcm)
            return pcm
        return None

    def get_late(self, key: bytes) -> Pcm | None:
        """What has come since `get` found nothing: the same sentence was spoken for someone else meanwhile."""
        pcm = self._phrases.get(key)
        if pcm is None and self._memory is not None:
            pcm = self._memory.get(key)
        if pcm is not None:
            self.requests["memory", "late_hit"] += 1
        return pcm

    def fetch(self, key: bytes, answer: Answer) -> bool:
        """Ask the store, after `get` found nothing. False: there is none to be asked, and `answer` is not called."""
        if self._store is None:
            return False

        def fetched(result: str, pcm: Pcm | None) -> None:
            self.requests["redis", result] += 1
            if pcm is not None:
                self._keep(key, pcm)
            answer(pcm)

        asked = self._store.fetch(key, fetched)
        if asked != "asked":
            self.requests["redis", asked] += 1
        return asked == "asked"

    def put(self, key: bytes, pcm: Pcm) -> None:
        """Keep the whole of a segment, as it was spoken."""
        self._keep(key, pcm)
        if self._store is not None:
            self.writes[self._store.put(key, pcm)] += 1

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()

    def _keep(self, key: bytes, pcm: Pcm) -> None:
        if key in self._phrases:
            pcm.flags.writeable = False
            self._phrases[key] = pcm
        elif self._memory is not None:
            self._memory.put(key, pcm)

    def _count(self, level: str, pcm: Pcm | None) -> None:
        self.requests[level, "miss" if pcm is None else "hit"] += 1
