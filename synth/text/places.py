"""Where a cut that has to be would fall best: what is remembered of a segment's text while it is read.

Owns the choice among clause, phrase and space. Knows words, not text; offsets are the segmenter's.
"""

from ..segment import Boundary
from . import boundaries
from .boundaries import Word
from .limits import (
    CLAUSE_FROM_SECONDS,
    FIRST_CLAUSE_WORDS,
    FIRST_FORCED_WORDS,
    PHRASE_FROM_SECONDS,
    SPACE_UP_TO_SECONDS,
)

_NONE = -1


class Places:
    """The last place of each kind; offsets are ends of words."""

    __slots__ = ("clause", "early_clause", "phrase", "space")

    def __init__(self) -> None:
        self.clause = self.phrase = self.space = _NONE
        self.early_clause = _NONE  # sooner than a clause should be cut off

    def note_clause(self, end: int, first: bool, seconds: float) -> None:
        if not first and seconds >= CLAUSE_FROM_SECONDS:
            self.clause = end
        else:
            self.early_clause = end

    def note_space(self, end: int, last: Word, word: Word, first: bool, words: float, seconds: float) -> None:
        """`words` and `seconds` end with `last`, which `word` follows in the same sentence."""
        if boundaries.holds_together(last, word):
            return
        phrase = word.begins_phrase and not last.links
        if first:
            if words <= FIRST_FORCED_WORDS:
                self.space = end
                if phrase and words > FIRST_CLAUSE_WORDS + 1:
                    self.phrase = end
        elif seconds <= SPACE_UP_TO_SECONDS:
            self.space = end
            if phrase and seconds >= PHRASE_FROM_SECONDS:
                self.phrase = end

    def good(self) -> tuple[int, Boundary] | None:
        if self.clause > 0:
            return self.clause, Boundary.CLAUSE
        place = self.phrase if self.phrase > 0 else self.space
        return (place, Boundary.FORCED) if place > 0 else None

    def bearable(self) -> tuple[int, Boundary] | None:
        """Where there is no good one."""
        return (self.early_clause, Boundary.CLAUSE) if self.early_clause > 0 else None

    def shift(self, by: int) -> None:
        """The first `by` code points of the text are gone."""
        for name in self.__slots__:
            setattr(self, name, max(getattr(self, name) - by, _NONE))
