"""The caches of a server as synthesis sees them: phrases, then memory, then a shared store that needs asking.

Owns which level is asked when, what goes where, and the counts. Knows neither utterances nor how a store is reached.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from ..speech import Speech
from .memory import Memory

Answer = Callable[[Speech | None], None]


class Store(Protocol):
    """A cache behind a wire (redis.py). Its calls return at once, on the event loop."""

    def fetch(self, key: bytes, answer: Callable[[str, Speech | None], None]) -> str:
        """ "asked": `answer(result, speech)` will be called once, later and within the budget; else why it was not."""
        ...

    def put(self, key: bytes, speech: Speech) -> str:
        """ "sent", or why it was not: nothing waits for room."""
        ...

    async def close(self) -> None: ...


class Levels:
    """`requests[level, result]` counts look-ups; a segment is looked for in "phrases", "memory" and "redis" in turn."""

    def __init__(self, memory_bytes: int = 0, store: Store | None = None) -> None:
        self._phrases: dict[bytes, Speech | None] = {}  # None: to be kept when it is spoken
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
        return [key for key, speech in self._phrases.items() if speech is None]

    @property
    def pinned_bytes(self) -> int:
        return sum(speech.pcm.nbytes for speech in self._phrases.values() if speech is not None)

    @property
    def memory_bytes(self) -> int:
        return self._memory.bytes if self._memory is not None else 0

    def holds(self, key: bytes) -> bool:
        """Whether `get` would find it; counts as no look-up."""
        return self._phrases.get(key) is not None or (self._memory is not None and key in self._memory)

    def get(self, key: bytes) -> Speech | None:
        """What this process has."""
        if self._phrases:
            speech = self._phrases.get(key)
            self._count("phrases", speech)
            if speech is not None:
                return speech
        if self._memory is not None:
            speech = self._memory.get(key)
            self._count("memory", speech)
            return speech
        return None

    def get_late(self, key: bytes) -> Speech | None:
        """What has come since `get` found nothing: the same sentence was spoken for someone else meanwhile."""
        speech = self._phrases.get(key)
        if speech is None and self._memory is not None:
            speech = self._memory.get(key)
        if speech is not None:
            self.requests["memory", "late_hit"] += 1
        return speech

    def fetch(self, key: bytes, answer: Answer) -> bool:
        """Ask the store, after `get` found nothing. False: there is none to be asked, and `answer` is not called."""
        if self._store is None:
            return False

        def fetched(result: str, speech: Speech | None) -> None:
            self.requests["redis", result] += 1
            if speech is not None:
                self._keep(key, speech)
            answer(speech)

        asked = self._store.fetch(key, fetched)
        if asked != "asked":
            self.requests["redis", asked] += 1
        return asked == "asked"

    def put(self, key: bytes, speech: Speech) -> None:
        """Keep the whole of a segment, as it was spoken."""
        self._keep(key, speech)
        if self._store is not None:
            self.writes[self._store.put(key, speech)] += 1

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()

    def _keep(self, key: bytes, speech: Speech) -> None:
        if key in self._phrases:
            speech.pcm.flags.writeable = False
            self._phrases[key] = speech
        elif self._memory is not None:
            self._memory.put(key, speech)

    def _count(self, level: str, speech: Speech | None) -> None:
        self.requests[level, "miss" if speech is None else "hit"] += 1
