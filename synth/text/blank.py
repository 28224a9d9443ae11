"""Turns into spaces what a voice must not speak, one code point for one, so that offsets stay those of the source.

Owns what is markup, control or foreign script and what counts as speakable. Knows no boundaries, voices or engines:
the scripts a voice can speak are passed in.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache

from ..segment import Mark
from . import markup

_TAG_CODE_POINTS = 16  # longest control tag between its brackets; "[" waits no longer than this for its "]"
_LINK_CODE_POINTS = 512  # longest link target that is dropped; a longer one is spoken
_SAID_ALONE = frozenset("%‰°§&№℃℉∞")
GLUE = "\N{NO-BREAK SPACE}"  # stands for a space at which no cut may fall


@dataclass(frozen=True, slots=True)
class Blanked:
    """`text` has as many code points as the source; `dropped` are the spans of words in scripts the voice lacks."""

    text: str
    dropped: tuple[tuple[int, int], ...]


def blank(text: str, scripts: tuple[str, ...]) -> Blanked:
    """Blank a whole text. `scripts` are Unicode script names ("Latin", "Han", …)."""
    blanker = Blanker(scripts)
    blanked = blanker.push(text, final=True)
    return Blanked(blanked, tuple(blanker.dropped))


def is_speakable(text: str) -> bool:
    """True when `text` holds a letter or a number of any script (Unicode L* or N*)."""
    return any(map(_is_letter_or_number, text))


class Blanker:
    """The same filter over a text that comes in pieces: what it returns does not depend on how the text was cut.

    Code points are held back only while they may still open a mark, a tag or a link (bounded, see the constants).
    """

    def __init__(self, scripts: tuple[str, ...]) -> None:
        self.dropped: list[tuple[int, int]] = []  # closed spans, for the caller to take away
        self.line_marks: list[int] = []  # offsets of bullets, headings and fences, which are blank in the text
        self.breaks: deque[tuple[int, float]] = deque()  # where a pause is asked for, and its seconds
        self.marks: list[Mark] = []  # at offsets of the source; for the caller to take away, as the breaks
        self._scripts = scripts
        self._held = ""  # undecided source text, beginning at _position
        self._position = 0
        self._previous = "\n"
        self._at_line_start = True
        self._base_dropped = False  # the last letter was dropped, its combining marks go with it
        self._repeated = ""  # the mark at the end of what was returned, as often as it stands there, three at most
        self._open: tuple[int, int] | None = None  # a dropped span that may still grow

    @property
    def held(self) -> str:
        return self._held

    def push(self, text: str, final: bool = False) -> str:
        """The blanked form of everything that is decided now; `final`: no text follows, so everything is."""
        if not text.isascii():
            text = text.translate(_WIDTHS)
        source = self._held + text if self._held else text
        origin = self._position
        out: list[str] = []
        at, size = 0, len(source)
        while at < size:
            if not self._at_line_start and (plain := _PLAIN.match(source, at)):
                run = plain.group()
                out.append(run)
                at = plain.end()
                self._base_dropped = False
                if self._open and not run.isspace():
                    self._close()
                self._previous = run[-1]
                continue
            length, blanked = self._decide(source, at, origin, final)
            if not length:
                break
            out.append(blanked)
            at += length
            self._previous = source[at - 1]
        self._held = source[at:]
        self._position = origin + at
        if final:
            self._close()
        return self._without_repeats("".join(out))

    def take_dropped(self, until: int) -> list[tuple[int, int]]:
        """The spans that end there or before."""
        count = bisect_left(self.dropped, until + 1, key=lambda span: span[1])
        taken = self.dropped[:count]
        del self.dropped[:count]
        return taken

    def has_line_mark(self, start: int, end: int) -> bool:
        mark = bisect_left(self.line_marks, start)
        return mark < len(self.line_marks) and self.line_marks[mark] < end

    def forget_line_marks(self, until: int) -> None:
        del self.line_marks[: bisect_left(self.line_marks, until)]

    def is_break_before(self, offset: int) -> bool:
        return bool(self.breaks) and self.breaks[0][0] < offset

    def take_break(self) -> float:
        """Seconds of the first pause that is asked for."""
        return self.breaks.popleft()[1]

    def take_marks(self, start: int, end: int) -> tuple[Mark, ...]:
        """Those inside of the source's `start` to `end`, from there; one that a cut goes through is forgotten."""
        taken = [mark for mark in self.marks if mark.start < end]
        del self.marks[: len(taken)]
        inside = (mark for mark in taken if mark.start >= start and mark.end <= end)
        return tuple(replace(mark, start=mark.start - start, end=mark.end - start) for mark in inside)

    def _without_repeats(self, blanked: str) -> str:
        """Marks stay three times in a row at most: the bundled voice takes 44 s for a hundred "=", 13 for 500 "!"."""
        joined = self._repeated + blanked
        if not joined:
            return ""
        kept, last = len(self._repeated), joined[-1]
        is_mark = not (last.isalnum() or last.isspace())
        self._repeated = last * min(3, len(joined) - len(joined.rstrip(last))) if is_mark else ""
        return _REPEATED.sub(lambda run: run[1] * 3 + " " * (len(run[0]) - 3), joined)[kept:]

    def _decide(self, source: str, at: int, origin: int, final: bool) -> tuple[int, str]:
        """(code points consumed, their blanked form); (0, "") when more text is needed."""
        char = source[at]
        if char == "\n":
            self._at_line_start = True
            return 1, "\n"
        if self._at_line_start:
            if char == " " or char == "\t":
                return 1, " "
            length = _line_mark_length(source, at, final)
            if length is None:
                return 0, ""
            if length:
                self.line_marks.append(origin + at)
                self._close()
                self._at_line_start = char in ">="  # a quoted line may hold a bullet; "=====" underlines a heading
                return length, " " * length
            self._at_line_start = False
        if char in _MARKS:
            if char == "<":
                length, blanked = self._markup(source, at, origin, final)
            else:
                length, blanked = _mark(source, at, self._previous, final)
            if length and char != "\t":
                self._close()
                self._base_dropped = False
            return length, blanked
        return 1, self._character(char, origin + at)

    def _markup(self, source: str, at: int, origin: int, final: bool) -> tuple[int, str]:
        """A tag is blank whatever it is; what the allowed ones say is kept in `breaks` and `marks`."""
        limit = at + markup.TAG_CODE_POINTS
        tag = markup.TAG.match(source, at, limit)
        if not tag:
            waits = not final and len(source) < limit and markup.OPEN_TAG.fullmatch(source, at)
            return (0, "") if waits else (1, "<")
        blanked = " " * len(tag[0])
        if pause_s := markup.pause_of(tag[0]):
            self.breaks.append((origin + at, pause_s))
        elif reading := markup.reading_of(tag[0]):
            name = tag[0][1:].split(maxsplit=1)[0]
            end = markup.element_end(source, tag.end(), name, final)
            if end is None:
                return 0, ""
            if end[1]:
                content = "".join(self._content(source, place, origin) for place in range(tag.end(), end[0]))
                core = content.strip()
                start = origin + tag.end() + len(content) - len(content.lstrip())
                if is_speakable(core):
                    self.marks.append(Mark(start, start + len(core), *reading))
                    content = content.replace(core, core.replace(" ", GLUE), 1)
                return end[1] - at, blanked + content + " " * (end[1] - end[0])
        return len(tag[0]), blanked

    def _content(self, source: str, at: int, origin: int) -> str:
        char = source[at]
        return " " if char in _MARKS else self._character(char, origin + at).replace("\n", " ")

    def _character(self, char: str, offset: int) -> str:
        replacement, script = _fate(char)
        if script == _INHERITED:
            foreign = self._base_dropped
        else:
            foreign = self._base_dropped = script != _COMMON and script not in self._scripts
        if foreign:
            start = self._open[0] if self._open else offset
            self._open = (start, offset + 1)
            return " "
        if replacement == "\n":
            self._at_line_start = True
        elif not (char.isspace() or replacement == " "):
            self._close()
        return replacement

    def _close(self) -> None:
        if self._open:
            self.dropped.append(self._open)
            self._open = None


def is_said_alone(text: str) -> bool:
    """True when `text` holds a sign that is read when nothing else is there: "€", "%". Others are decoration then."""
    return any(char in _SAID_ALONE or unicodedata.category(char) == "Sc" for char in text)


# Marks: what is not spoken, by the syntax of Markdown, SSML-like markup and control tags.

_MARKS = frozenset("*_`~[]<!\t")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f*_`~\[\]<!\u0080-\U0010ffff]+")
_REPEATED = re.compile(r"([^\w\s])\1{3,}")
_BULLETS = frozenset("-*+\N{EN DASH}\N{EM DASH}")
_FENCE = re.compile(r"```[\w+.#-]{0,20}[ \t]{0,4}")
_HEADING = re.compile(r"#{1,6}")
_TAG_NAME = rf"[A-Za-z][A-Za-z0-9_:=.-]{{0,{_TAG_CODE_POINTS - 1}}}"
_TAG = re.compile(rf"\[{_TAG_NAME}\]")
_OPEN_TAG = re.compile(rf"\[(?:{_TAG_NAME})?")

# Possessive quantifiers: links and markup are matched in linear time whatever they hold.
_TARGET = r"""\]\((?:[^\s()\[\]"]++|\([^\s()\[\]"]*+\)| ++"[^"\n]*+")*"""
_LINK = re.compile(rf"{_TARGET} *+\)")
_OPEN_LINK = re.compile(rf"""{_TARGET}(?:\([^\s()\[\]"]*+| ++(?:"[^"\n]*+)?)?""")


def _line_mark_length(source: str, at: int, final: bool) -> int | None:
    """Length of the bullet, heading mark, quote mark or code fence at a line start; 0: there is none; None: wait."""
    char = source[at]
    if char in ">=•":
        return 1
    if char == "`":
        if not "```".startswith(source[at : at + 3]):
            return 0
        if len(source) - at < 3:
            return 0 if final else None
        fence = _FENCE.match(source, at)
        assert fence
        if fence.end() == len(source):
            return fence.end() - at if final else None
        return fence.end() - at if source[fence.end()] == "\n" else 0
    if char == "#":
        heading = _HEADING.match(source, at)
        assert heading
        end = heading.end()
    elif char in _BULLETS:
        end = at + 1
    else:
        return 0
    if end == len(source):
        return end - at if final else None
    return end - at if source[end] in " \t\n" else 0


def _mark(source: str, at: int, previous: str, final: bool) -> tuple[int, str]:
    match source[at]:
        case "*" | "`" | "\t":
            return 1, " "
        case "_" | "~" | "!" as char:
            following = source[at + 1 : at + 2]
            if char == "!" and previous not in " \n":  # not an image: the end of a sentence must not wait
                return 1, "!"
            if not following and not final:
                return 0, ""
            if char == "_":  # inside a word it is a letter of its name, as in CommonMark
                return 1, "_" if previous.isalnum() and following.isalnum() else " "
            if char == "~":
                return 1, " " if following == "~" or previous == "~" else "~"
            return 1, " " if following == "[" else "!"
        case "[":
            return _control_tag(source, at, final)
        case "]":
            return _link_target(source, at, final)
        case _:
            return 1, "<"


def _control_tag(source: str, at: int, final: bool) -> tuple[int, str]:
    tag = _TAG.match(source, at)
    if not tag:
        if not final and _OPEN_TAG.fullmatch(source, at):
            return 0, ""
        return 1, " "
    if tag.end() == len(source):
        if not final:
            return 0, ""
    elif source[tag.end()] == "(":  # a link: its text is spoken
        return 1, " "
    return tag.end() - at, " " * (tag.end() - at)


def _link_target(source: str, at: int, final: bool) -> tuple[int, str]:
    """`](target)` goes whole; `](` goes always, so that no engine ever sees `[word](/pronunciation/)`."""
    following = source[at + 1 : at + 2]
    if following != "(":
        return (1, " ") if following or final else (0, "")
    if link := _LINK.match(source, at, at + _LINK_CODE_POINTS):
        return link.end() - at, " " * (link.end() - at)
    if not final and len(source) - at < _LINK_CODE_POINTS and _OPEN_LINK.fullmatch(source, at):
        return 0, ""
    return 2, "  "


# Characters: what each stands for and which script it belongs to.

_COMMON, _INHERITED = "Common", "Inherited"

# Full- and half-width forms are the same characters in another width (Unicode Standard Annex 11).
_WIDTHS = {
    code: folded for code in range(0xFF01, 0xFFEF) if len(folded := unicodedata.normalize("NFKC", chr(code))) == 1
}


@lru_cache(maxsize=8192)
def _fate(char: str) -> tuple[str, str]:
    """(what is put in its place, its script)."""
    code = ord(char)
    category = unicodedata.category(char)
    if category in ("Zl", "Zp") or char in "\x0b\x0c\x85":
        return "\n", _COMMON
    if category[0] in "CZ":  # controls, zero-width, surrogates, private, unassigned, spaces
        return " ", _COMMON
    if category == "Nd":
        return str(unicodedata.decimal(char)), _COMMON
    if category[0] == "L":
        return char, _script(char)
    if category[0] == "M":
        if code == 0x20E3 or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:  # emoji and variant selectors
            return " ", _COMMON
        script = _script(char)
        return char, _INHERITED if script == _COMMON else script
    if (category == "So" and code >= 0x2190 and not 0x3200 <= code <= 0x33FF) or 0x1F3FB <= code <= 0x1F3FF:
        return " ", _COMMON  # emoji, dingbats, box drawing; °, ℃, №, ㎏ stay
    return char, _COMMON


# The standard library knows no script property; the first word of a character's name is its script, but for these.
_SCRIPT_OF_NAME = {
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "KATAKANA-HIRAGANA": "Katakana",
    "FEMININE": "Latin",
    "MASCULINE": "Latin",
    "KELVIN": "Latin",
    "ANGSTROM": "Latin",
    "OHM": "Greek",
    "COMBINING": _COMMON,
    "ENCLOSING": _COMMON,
    "VARIATION": _COMMON,
    "MODIFIER": _COMMON,
    "MATHEMATICAL": _COMMON,
    "DOUBLE-STRUCK": _COMMON,
    "SCRIPT": _COMMON,
    "BLACK-LETTER": _COMMON,
    "MICRO": _COMMON,
    "PLANCK": _COMMON,
    "INFORMATION": _COMMON,
}


def _script(char: str) -> str:
    name = unicodedata.name(char, _COMMON).split(" ", 1)[0]
    return _SCRIPT_OF_NAME.get(name) or name.capitalize()


@lru_cache(maxsize=8192)
def _is_letter_or_number(char: str) -> bool:
    return unicodedata.category(char)[0] in "LN"
