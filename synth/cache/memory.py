"""The level nearest to the listener: PCM in this process, bounded in bytes, the least recently used goes first.

Pure. Speech is kept by reference, its samples made read-only, so they cannot be damaged here and need no checksum: one
over a segment of 5 s would take 57 µs at every hit.
"""

from collections import OrderedDict

from ..speech import Speech

ENTRY_BYTES = 300  # an entry beside its samples: key, array, place in the order (measured: 271)


class Memory:
    """Every method is O(1), amortized."""

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of all entries together, what keeps them included; 0 keeps nothing."""
        self._most_bytes = most_bytes
        self._entries: OrderedDict[bytes, Speech] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def get(self, key: bytes) -> Speech | None:
        """What was put, read-only; it is now the last to go."""
        speech = self._entries.get(key)
        if speech is not None:
            self._entries.move_to_end(key)
        return speech

    def put(self, key: bytes, speech: Speech) -> None:
        """Keep the speech of a whole segment. What is larger than the bound alone is not kept, and evicts nothing."""
        if (old := self._entries.pop(key, None)) is not None:
            self.bytes -= _size(old)
        size = _size(speech)
        if size > self._most_bytes:
            return
        speech.pcm.flags.writeable = False
        self._entries[key] = speech
        self.bytes += size
        while self.bytes > self._most_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.bytes -= _size(oldest)


def _size(speech: Speech) -> int:
    return speech.pcm.nbytes + len(speech.times) + ENTRY_BYTES
