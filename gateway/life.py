"""The life of a context, as one table.

Two rules: every transition of a context is in `TABLE`; a pair that is missing from it cannot happen, and a client can
reach no missing pair. The tables of the documentation are generated from it.
"""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """Where a context id is in its life, on one connection."""

    UNSEEN = "unseen"  # never named on this connection
    OPEN = "open"  # takes text
    ENDING = "ending"  # `end` was said; what is left is being spoken
    CLOSED = "closed"  # ended by done, cancelled or an error; stays so until an explicit start


class Event(Enum):
    """What may happen to a context: a client's message, or the end of its work."""

    START = "start"
    TEXT = "text"
    FLUSH = "flush"
    END = "end"
    CANCEL = "cancel"
    PLAYED = "played"
    SENT = "sent"  # the last audio of an ended text has gone out
    FAILED = "failed"  # refused, broken or idle: an error ends it


class Action(Enum):
    """What the session does about it."""

    OPEN = "open"
    OPEN_AND_SPEAK = "open with the defaults, then take the text"
    SPEAK = "take the text"
    FLUSH = "speak what is buffered; answer flushed behind it"
    END = "speak what is buffered; done behind it"
    CANCEL = "stop at once; answer cancelled"
    CANCEL_AGAIN = "answer cancelled once more, if it ended less than 60 s ago"
    REPORT = "correct the play-out clock"
    DONE = "answer done"
    FAIL = "answer the error that ends it"
    REFUSE_EXISTS = "error context_exists; nothing changes"
    REFUSE_CLOSED = "error context_closed; nothing changes"
    COUNT_LATE = "ignore and count"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Transition:
    """What the session does, and where the context is afterwards."""

    action: Action
    state: State


TABLE: dict[tuple[State, Event], Transition] = {
    (State.UNSEEN, Event.START): Transition(Action.OPEN, State.OPEN),
    (State.UNSEEN, Event.TEXT): Transition(Action.OPEN_AND_SPEAK, State.OPEN),
    (State.UNSEEN, Event.FLUSH): Transition(Action.REFUSE_CLOSED, State.UNSEEN),
    (State.UNSEEN, Event.END): Transition(Action.REFUSE_CLOSED, State.UNSEEN),
    (State.UNSEEN, Event.CANCEL): Transition(Action.IGNORE, State.UNSEEN),
    (State.UNSEEN, Event.PLAYED): Transition(Action.IGNORE, State.UNSEEN),
    (State.OPEN, Event.START): Transition(Action.REFUSE_EXISTS, State.OPEN),
    (State.OPEN, Event.TEXT): Transition(Action.SPEAK, State.OPEN),
    (State.OPEN, Event.FLUSH): Transition(Action.FLUSH, State.OPEN),
    (State.OPEN, Event.END): Transition(Action.END, State.ENDING),
    (State.OPEN, Event.CANCEL): Transition(Action.CANCEL, State.CLOSED),
    (State.OPEN, Event.PLAYED): Transition(Action.REPORT, State.OPEN),
    (State.OPEN, Event.FAILED): Transition(Action.FAIL, State.CLOSED),
    (State.ENDING, Event.START): Transition(Action.REFUSE_EXISTS, State.ENDING),
    (State.ENDING, Event.TEXT): Transition(Action.REFUSE_CLOSED, State.ENDING),
    (State.ENDING, Event.FLUSH): Transition(Action.REFUSE_CLOSED, State.ENDING),
    (State.ENDING, Event.END): Transition(Action.REFUSE_CLOSED, State.ENDING),
    (State.ENDING, Event.CANCEL): Transition(Action.CANCEL, State.CLOSED),
    (State.ENDING, Event.PLAYED): Transition(Action.REPORT, State.ENDING),
    (State.ENDING, Event.SENT): Transition(Action.DONE, State.CLOSED),
    (State.ENDING, Event.FAILED): Transition(Action.FAIL, State.CLOSED),
    (State.CLOSED, Event.START): Transition(Action.OPEN, State.OPEN),
    (State.CLOSED, Event.TEXT): Transition(Action.COUNT_LATE, State.CLOSED),
    (State.CLOSED, Event.FLUSH): Transition(Action.COUNT_LATE, State.CLOSED),
    (State.CLOSED, Event.END): Transition(Action.COUNT_LATE, State.CLOSED),
    (State.CLOSED, Event.CANCEL): Transition(Action.CANCEL_AGAIN, State.CLOSED),
    (State.CLOSED, Event.PLAYED): Transition(Action.REPORT, State.CLOSED),
}
