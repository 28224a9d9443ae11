"""The turns of one connection: the contexts of a client by its own ids, and text in whatever grain it comes.

A client may use an id again as soon as it has ended it; to the session every turn is a context of its own.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

DEAD = 256  # turns that failed and whose client has not ended them yet; what it still sends for them is left out
_TERMINALS = ".!?…。！？"
_CLOSERS = "\"'”’)]»"


@dataclass(slots=True)
class Turn:
    """One stream of text to one of audio. `id` is the client's, `name` the session's."""

    id: str
    name: str
    tail: str = ""  # the text that came last
    flushed: bool = False  # … and was to be spoken at once
    heard: bool = False  # audio of it has gone out
    ended: bool = False  # no more text comes

    def text(self, piece: str) -> str:
        """`piece` as it is joined to what came before: sentences that came apart are not run together."""
        joined = f" {piece}" if _needs_space(self.tail, piece, self.flushed) else piece
        self.tail, self.flushed = piece, False
        return joined


def _needs_space(before: str, piece: str, flushed: bool) -> bool:
    if not before or not piece or before[-1].isspace() or not piece[0].isalnum():
        return False
    if flushed:
        return True
    ends = before.rstrip(_CLOSERS)[-1:] in tuple(_TERMINALS)
    if " " in before.strip():  # a sentence
        return ends
    return ends and len(before) > 1 and piece[0].isupper()  # a token: that of "example.com" stays as it is


T = TypeVar("T", bound=Turn)


class Turns(Generic[T]):
    """Live turns by id and by name, and the ids of those that failed."""

    def __init__(self) -> None:
        self._by_id: dict[str, T] = {}
        self._by_name: dict[str, T] = {}
        self._dead: OrderedDict[str, None] = OrderedDict()
        self._count = 0

    def new_name(self) -> str:
        """One that the session has never seen."""
        self._count += 1
        return str(self._count)

    def add(self, turn: T) -> T:
        """A turn that begins; under its id it takes the place of an older one."""
        self._by_id[turn.id] = turn
        self._by_name[turn.name] = turn
        return turn

    def of_id(self, id: str) -> T | None:
        return self._by_id.get(id)

    def of_name(self, name: object) -> T | None:
        return self._by_name.get(name) if isinstance(name, str) else None

    def remove(self, turn: T) -> None:
        self._by_name.pop(turn.name, None)
        if self._by_id.get(turn.id) is turn:
            del self._by_id[turn.id]

    def fail(self, turn: T) -> None:
        """The turn has failed: what still comes under its id is dead until the client has ended it."""
        self.remove(turn)
        if not turn.ended:
            self._dead[turn.id] = None
            while len(self._dead) > DEAD:
                self._dead.popitem(last=False)

    def is_dead(self, id: str, *, ends: bool) -> bool:
        """Whether a message of this id comes too late; `ends`: it is the last one."""
        if id not in self._dead:
            return False
        if ends:
            del self._dead[id]
        return True

    def live(self) -> list[T]:
        return list(self._by_name.values())
