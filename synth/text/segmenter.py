"""Cuts a stream of text into segments, as early as the listener needs and as late as the sentence allows.

Owns where cuts fall. What is not spoken is blanked before boundaries are looked for (synth/text/blank.py keeps every
offset), so marks and tags never hide the end of a sentence. Pure: no clock, no I/O; the same text gives the same
segments however it is cut into pushes.
"""

import math
import re
from dataclasses import replace

from ..segment import Boundary, Segment
from . import boundaries
from .blank import Blanker, is_said_alone, is_speakable
from .boundaries import WIDE, WORD_CODE_POINTS, Tail, Word
from .limits import (
    FIRST_CLAUSE_WORDS,
    FIRST_FORCED_WORDS,
    FIRST_SECONDS,
    FIRST_WORDS,
    LEAD_CODE_POINTS,
    LEAD_SECONDS,
    PARAGRAPH_SECONDS,
    PHRASE_FROM_SECONDS,
    SEGMENT_CODE_POINTS,
    SEGMENT_SECONDS,
    SPACE_UP_TO_SECONDS,
)
from .markup import PAUSE_SECONDS
from .places import Places

_PARAGRAPHED = frozenset((Boundary.START, Boundary.PARAGRAPH))
_BREAK = re.compile(rf"\Z|[ \n]|{WIDE.pattern}")
_GAP = re.compile(r"[ \n]*")
_RUN = re.compile(rf"{WIDE.pattern}|[^ \n{WIDE.pattern[1:-1]}]{{1,{WORD_CODE_POINTS}}}")
_ORDINARY = re.compile(rf" ([^ \n{WIDE.pattern[1:-1]}]{{1,{WORD_CODE_POINTS - 1}}})(?=[ \n])")


class Segmenter:
    """One per context. `push`, `flush`, `idle` and `end` return the segments that are decided now.

    Segments tile the source from offset 0 on; what is left after the last one holds nothing to speak. `flush` and
    `idle` are cuts of their own and the next segment is a first one again (a listener waits for it).
    """

    def __init__(self, scripts: tuple[str, ...] = ("Latin",), speed: float = 1.0) -> None:
        self._paragraph_s = PARAGRAPH_SECONDS / speed
        self._stretch = max(1.0, 1 / speed)  # a slow voice gets less text at once; a fast one no more than usual
        self._blanker = Blanker(scripts)
        self._received = 0
        self._resolved_at = 0  # source offset up to which dropped words are reported
        self._index = 0
        self._before = Boundary.START
        self._lead_in = ""
        self._pause_s = 0.0  # asked for before the segment being read
        self._least_pause_s = 0.0  # … by a blank line that came after its cut
        self._first = True
        self._line_is_item = False
        self._at_line_start = True

        self._text = ""  # blanked; [_start:_at] is read, the rest is not
        self._base = 0  # source offset of _text[0]
        self._start = 0  # where the segment being read begins, but for what was skipped
        self._skipped = 0  # code points of a long beginning with nothing to speak
        self._restart(0)

    # What the caller sees.

    @property
    def received(self) -> int:
        """Code points so far."""
        return self._received

    @property
    def pending(self) -> bool:
        """Whether something speakable waits for its segment."""
        return self._speakable or is_speakable(self._text[self._at :]) or is_speakable(self._blanker.held)

    def push(self, text: str) -> list[Segment]:
        self._received += len(text)
        self._append(text)
        segments: list[Segment] = []
        self._read(len(self._text), False, segments)
        self._compact()
        return segments

    def flush(self) -> list[Segment]:
        """Everything that is buffered; what the last segment is followed by is what its punctuation says."""
        return self._finish(None)

    def end(self) -> list[Segment]:
        """Everything that is buffered; no more text follows."""
        return self._finish(Boundary.END)

    def idle(self) -> list[Segment]:
        """What is buffered up to the last word boundary, for a writer who paused."""
        segments: list[Segment] = []
        end = self._last_word_end()
        self._read(end, True, segments)
        if self._speakable and is_speakable(self._text[self._start : end]):
            self._cut(end, self._closing_boundary(), segments)
        self._first = self._first or bool(segments)
        self._compact()
        return segments

    def take_dropped(self) -> list[tuple[int, int]]:
        """Spans of words in scripts the voice lacks, in text that is settled: each is returned once."""
        return self._blanker.take_dropped(self._resolved_at)

    # Reading.

    def _append(self, text: str, final: bool = False) -> None:
        blanked = self._blanker.push(text, final)
        if blanked:
            self._text = self._text + blanked if self._text else blanked

    def _restart(self, at: int) -> None:
        """Begin a segment at `at`."""
        self._start = self._at = self._word_end = self._second_last_end = at
        self._speakable = False
        self._speech_at = at  # where the first word with something to speak begins
        self._words = 0.0
        self._seconds = 0.0
        self._mark_skipped = False  # the long beginning held a bullet or heading mark
        self._last: Word | None = None
        self._continued = self._in_address = False
        self._newlines = 0
        self._gap = ""  # the first character of the gap after the last word
        self._places = Places()

    def _read(self, end: int, final: bool, segments: list[Segment]) -> None:
        """Read words from `_text[_at:end]`, cutting where it is decided; `final`: nothing after `end` decides more."""
        text = self._text
        while True:
            self._read_ordinary(end)
            self._read_gap(end)
            at = self._at
            if self._speakable:
                if stop := self._decided_stop(end):
                    self._cut(self._word_end, stop, segments)
                    continue
                if self._at_break() or at - self._start > SEGMENT_CODE_POINTS:
                    after = self._closing_boundary()
                    is_clause = after is Boundary.FORCED and self._at_break()
                    self._cut(self._word_end, Boundary.CLAUSE if is_clause else after, segments)
                    continue
            elif self._at_break():
                self._take_break()
                continue
            elif at - self._start > 4 * LEAD_CODE_POINTS:
                self._mark_skipped = self._has_line_mark(at)
                self._blanker.forget_line_marks(self._base + at)
                self._skipped += at - self._start
                self._start = self._word_end = self._second_last_end = at
            run = _RUN.match(text, at, end)
            if not run:
                return
            found = run.group()
            if run.end() == end and not final and not (len(found) == 1 and WIDE.match(found)):
                return
            word = self._word(found)
            if self._speakable and (cut := self._cut_before(word, final and run.end() == end)):
                self._cut(*cut, segments)
                continue
            self._take(word, at, end)

    def _read_ordinary(self, end: int) -> None:
        """The loop of `_read` for words inside a sentence with single spaces around them, which most words are.

        It decides nothing: it stops before the first word that could. Measured: it makes 100 kB in one push 2.5 times
        faster.
        """
        last = self._last
        if last is None or self._gap or not self._speakable:
            return
        text, first, word_end, at = self._text, self._first, self._word_end, self._second_last_end
        words, seconds, places = self._words, self._seconds, self._places
        most_seconds = FIRST_SECONDS if first else SEGMENT_SECONDS
        most_words = FIRST_WORDS if first else math.inf
        stretch = self._stretch
        least_words, least_seconds = (FIRST_CLAUSE_WORDS + 1, 0) if first else (0, PHRASE_FROM_SECONDS)
        end = min(end, self._start + SEGMENT_CODE_POINTS)
        while ordinary := _ORDINARY.match(text, word_end, end):
            word = boundaries.read_separate(ordinary[1])
            if last.tail is not Tail.NONE and (last.tail is not Tail.INITIALS or word.starts_sentence):
                break
            if not word.whole or last.counts:
                break
            if seconds + word.seconds * stretch > most_seconds or words + word.words > most_words:
                break
            if words <= FIRST_FORCED_WORDS if first else seconds <= SPACE_UP_TO_SECONDS:
                if not boundaries.holds_together(last, word):
                    places.space = word_end
                if word.begins_phrase and not last.links and words > least_words and seconds >= least_seconds:
                    places.phrase = word_end
            at, word_end = word_end, ordinary.end()
            words += word.words
            seconds += word.seconds * stretch
            last = word
        self._last, self._word_end, self._at, self._second_last_end = last, word_end, word_end, at
        self._words, self._seconds = words, seconds

    def _read_gap(self, end: int) -> None:
        if self._speakable:
            end = min(end, self._start + SEGMENT_CODE_POINTS + 1)
        if self._blanker.breaks:
            end = min(end, self._blanker.breaks[0][0] - self._base)
        gap = _GAP.match(self._text, self._at, max(end, self._at))
        assert gap
        if gap.end() == self._at:
            return
        if not self._gap:
            self._gap = self._text[self._at]
        if newlines := self._text.count("\n", self._at, gap.end()):
            self._newlines += newlines
            self._at_line_start = True
            if self._newlines > 1 and not self._speakable and self._before not in _PARAGRAPHED:
                # What is before it was spoken for another boundary: its tail is that one's, the rest is waited.
                self._least_pause_s = self._paragraph_s
                self._lead_in = ""
        self._at = gap.end()

    def _at_break(self) -> bool:
        return self._blanker.is_break_before(self._base + self._at + 1)

    def _take_break(self) -> None:
        """Have the next segment wait; nothing waits before the first word."""
        pause_s = self._blanker.take_break()
        if self._before is not Boundary.START:
            self._pause_s = min(self._pause_s + pause_s, PAUSE_SECONDS)

    def _word(self, run: str) -> Word:
        glued = not self._gap and self._last is not None and self._last.wide
        word = boundaries.read(run, glued, self._continued)
        return replace(word, text=run, whole=True, seconds=0.0) if self._continued and self._in_address else word

    def _decided_stop(self, end: int) -> Boundary | None:
        """The boundary after the last word if it ended a sentence and enough is known of what follows."""
        if self._last is None or self._last.tail is not Tail.STOP:
            return None
        if self._gap != "\n" or self._first:
            return Boundary.SENTENCE if self._gap or self._at < end else None
        # A second newline makes it a paragraph. Only a first segment cannot wait for it: there, as after a stop and a
        # space, the blank line shows in the pause of the next segment.
        if self._newlines > 1:
            return Boundary.PARAGRAPH
        return Boundary.SENTENCE if self._at < end else None

    def _cut_before(self, word: Word, is_last: bool) -> tuple[int, Boundary] | None:
        """Where to cut now that the word after the last one is known: (offset in _text, boundary)."""
        last = self._last
        assert last is not None
        end = self._word_end
        if self._newlines > 1:
            return end, Boundary.PARAGRAPH
        if self._newlines and (
            self._line_is_item or self._begins_item(word) or not boundaries.line_goes_on(last, word)
        ):
            return end, Boundary.SENTENCE
        if boundaries.sentence_ends(last.tail, word):
            return end, Boundary.SENTENCE
        is_stub = is_last or word.tail in (Tail.STOP, Tail.STOP_UNLESS_LOWER)
        if boundaries.clause_ends(last.tail, word):
            if self._first and self._words >= FIRST_CLAUSE_WORDS and not is_stub:
                return end, Boundary.CLAUSE
            self._places.note_clause(end, self._first, self._seconds)
        elif last.tail is not Tail.ATTACHED and (self._gap or boundaries.is_between_characters(last, word)):
            self._places.note_space(end, last, word, self._first, self._words, self._seconds)
        if self._is_too_long(word, is_stub or word.tail is Tail.CLAUSE):
            if place := self._places.good():
                return place
            if not self._is_over_limit(word) and boundaries.holds_together(last, word):
                return None  # a number from its start on: the next place is better
            return self._places.bearable() or (end, Boundary.FORCED)
        return None

    def _is_too_long(self, word: Word, ends: bool) -> bool:
        """Whether the segment is too long with `word` in it; `ends`: a sentence or clause ends with `word`."""
        if self._is_over_limit(word):
            return True
        if not self._first or ends:
            return False
        total = self._seconds + word.seconds * self._stretch
        return total > FIRST_SECONDS or self._words + word.words > FIRST_WORDS

    def _is_over_limit(self, word: Word) -> bool:
        too_long = self._seconds + word.seconds * self._stretch > SEGMENT_SECONDS
        return too_long or self._at + len(word.text) - self._start > SEGMENT_CODE_POINTS

    def _begins_item(self, word: Word) -> bool:
        """Whether `word`, the first of its line, begins a list item or heading."""
        if boundaries.is_list_number(word.text):
            return True
        return self._has_line_mark(self._at)

    def _has_line_mark(self, at: int) -> bool:
        return self._mark_skipped or self._blanker.has_line_mark(self._base + self._word_end, self._base + at)

    def _take(self, word: Word, at: int, end: int) -> None:
        number = False
        if self._at_line_start:
            number = boundaries.is_list_number(word.text)
            self._line_is_item = self._begins_item(word)
            self._at_line_start = False
        elif self._last is not None:
            number = boundaries.is_ordinal(word, self._last)
        word_end = at + len(word.text)
        following = self._text[word_end : word_end + 1] if word_end < end else ""
        in_pieces = len(word.text) == WORD_CODE_POINTS and not _BREAK.match(following)
        if word.initial and not self._speakable:
            self._speakable = True
            lead = self._skipped + at - self._start
            if lead > LEAD_CODE_POINTS or self._seconds > min(LEAD_SECONDS, SEGMENT_SECONDS - word.seconds):
                self._seconds = 0.0
                self._speech_at = at
        if number or in_pieces or not self._speakable:
            word = replace(word, tail=Tail.NONE)
        self._in_address = word.address or (self._in_address and self._continued)
        self._continued = in_pieces
        self._second_last_end = self._word_end
        self._last = word
        self._words += word.words
        self._seconds += word.seconds * self._stretch
        self._at = self._word_end = word_end
        self._mark_skipped = False
        self._newlines = 0
        self._gap = ""

    # Cutting.

    def _cut(self, at: int, after: Boundary, segments: list[Segment]) -> None:
        # Long punctuation before the first word is not spoken either: it would only delay it.
        text = " " * (self._skipped + self._speech_at - self._start) + self._text[self._speech_at : at]
        start = self._base + self._start - self._skipped
        end = start + len(text)
        marks = self._blanker.take_marks(start, end)
        before, lead_in = self._before, self._lead_in
        pause_s = max(self._pause_s, self._least_pause_s)
        segments.append(Segment(self._index, text, start, end, before, after, lead_in, pause_s, marks))
        self._pause_s = self._least_pause_s = 0.0
        self._skipped = 0
        self._index += 1
        self._first = False
        self._before = after
        self._lead_in = text if after in (Boundary.CLAUSE, Boundary.FORCED) else ""
        self._settle(self._base + at)
        self._restart(at)

    def _settle(self, offset: int) -> None:
        self._resolved_at = offset
        self._blanker.forget_line_marks(offset)

    def _finish(self, after: Boundary | None) -> list[Segment]:
        self._append("", final=True)
        size = len(self._text)
        segments: list[Segment] = []
        self._read(size, True, segments)
        if self._speakable:
            self._cut(size, after or self._closing_boundary(), segments)
        elif segments:  # nothing speakable follows the last sentence: it keeps the rest
            last = segments[-1]
            length = self._skipped + size - self._start
            rest = self._text[self._start :] if length <= LEAD_CODE_POINTS else " " * length
            self._before = after or last.after
            segments[-1] = replace(last, text=last.text + rest, end=last.end + length, after=self._before)
            self._skipped = 0
            self._settle(self._base + size)
            self._restart(size)
        elif is_said_alone(self._text[self._start :]):
            self._speech_at = self._start
            self._cut(size, after or self._closing_boundary(), segments)
        self._resolved_at = self._received
        self._first = True
        self._compact()
        return segments

    def _closing_boundary(self) -> Boundary:
        return boundaries.closing(self._last.tail if self._last else Tail.NONE, self._newlines)

    def _last_word_end(self) -> int:
        """Where the text read so far may be cut without cutting a word."""
        size = len(self._text)
        if self._at < size:  # a word that may go on
            tail = self._word(self._text[self._at :]).tail
            if tail not in (Tail.NONE, Tail.ATTACHED, Tail.CLAUSE_UNLESS_DIGIT) and not self._blanker.held:
                return size
        if self._last and self._last.tail is Tail.ATTACHED:
            return self._second_last_end
        return self._word_end

    def _compact(self) -> None:
        """Forget the text of emitted segments."""
        if self._start:
            shift = self._start
            self._text = self._text[shift:]
            self._base += shift
            self._start = 0
            self._places.shift(shift)
            for name in ("_at", "_word_end", "_second_last_end", "_speech_at"):
                setattr(self, name, max(getattr(self, name) - shift, -1))
