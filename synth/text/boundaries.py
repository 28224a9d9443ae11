"""What the end of a word says about the sentence: it ends, it pauses, it goes on, or the next word decides.

Owns the rules and word lists; knows one word at a time and the word after it. Offsets, pushes and lengths are the
segmenter's.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from ..segment import Boundary
from .estimate import seconds

WORD_CODE_POINTS = 48  # a longer run without a space is looked at in pieces: the look-ahead stays bounded
ADDRESS_SECONDS = 2.5
WORD_SECONDS = 7.0  # so is one that takes longer to say, such as 40 digits: no word is longer than a segment


class Tail(Enum):
    NONE = "none"
    CLAUSE = "clause"
    CLAUSE_UNLESS_DIGIT = "clause unless digit"  # "1," may go on as "1, 2, 3"
    STOP = "stop"
    STOP_UNLESS_LOWER = "stop unless lower"  # "Well... you know", '"No!" she said'
    ABBREVIATION = "abbreviation"  # "etc.", "a.m.": the sentence ends when a capital follows
    INITIALS = "initials"  # "U.S.", "J.": the sentence ends when a word follows that begins sentences
    NUMERO = "numero"  # "No. 5", but "No. Never."
    ATTACHED = "attached"  # "Dr.": belongs to the next word


@dataclass(frozen=True, slots=True, eq=False)
class Word:
    """A run without spaces, cut short after a sentence end or dash inside it, and what its spelling says."""

    text: str
    whole: bool  # all of the run
    tail: Tail
    initial: str  # its first letter or digit, "" if it has none
    final: str  # its last one
    wide: bool  # one character of a script without spaces
    words: float  # 1, ½ for a wide one, 0 for punctuation alone
    seconds: float
    starts_sentence: bool  # "The", "However": words that are capital because a sentence begins
    begins_phrase: bool  # "and", "which", "to": a cut that has to be sounds best before it
    counts: bool  # "Chapter", "Figure": a number follows
    address: bool  # a link: read short, in the name of its host
    links: bool  # "the", "of": does not end a phrase


def read(run: str, glued: bool, continued: bool) -> Word:
    """The first word of `run`.

    `glued`: a wide character stands directly before it. `continued`: it is the next piece of a run longer than
    WORD_CODE_POINTS.
    """
    if continued:
        return _word(run, run, False)
    if glued and (leading := _LEADING_STOP.match(run)):
        return _word(run, leading.group(), True)
    return read_separate(run)


@lru_cache(maxsize=4096)
def read_separate(run: str) -> Word:
    """`read` for a run with a space, or another run's end, before it."""
    return _word(run, run[: _inner_end(run)], True)


def _word(run: str, text: str, punctuated: bool) -> Word:
    tail = _tail(text) if punctuated or len(run) < WORD_CODE_POINTS else Tail.NONE
    duration = seconds(text)
    if address := punctuated and bool(_ADDRESS.search(run)):
        duration = min(duration, ADDRESS_SECONDS)
    if duration > WORD_SECONDS:
        text = _affordable(text)
        tail, duration = Tail.NONE, seconds(text)
    initial = next(filter(str.isalnum, text), "")
    wide = len(text) == 1 and bool(WIDE.match(text))
    lower = text.lower()
    return Word(
        text=text,
        whole=len(text) == len(run),
        tail=tail,
        initial=initial,
        final=next(filter(str.isalnum, reversed(text)), ""),
        wide=wide,
        words=(0.5 if wide else 1.0) if initial else 0.0,
        seconds=duration,
        starts_sentence=_bare(text) in _STARTERS,
        begins_phrase=lower in _PHRASE_STARTS,
        counts=text in _NUMBERED,
        address=address,
        links=lower in _LINKING_WORDS,
    )


def sentence_ends(tail: Tail, following: Word) -> bool:
    """Whether the sentence ends between a word with this tail and `following`."""
    match tail:
        case Tail.STOP:
            return True
        case Tail.STOP_UNLESS_LOWER:
            return bool(following.initial) and not following.initial.islower()
        case Tail.ABBREVIATION:
            return following.initial.isupper() and _bare(following.text).rstrip(_TERMINATORS) not in _CALENDAR
        case Tail.INITIALS:
            return following.starts_sentence
        case Tail.NUMERO:
            return bool(following.initial) and not following.initial.isdigit()
        case _:
            return False


def clause_ends(tail: Tail, following: Word) -> bool:
    """Whether a clause ends between a word with this tail and `following`, which does not begin a sentence."""
    match tail:
        case Tail.CLAUSE | Tail.STOP_UNLESS_LOWER:
            return True
        case Tail.CLAUSE_UNLESS_DIGIT:
            return not following.initial.isdigit()
        case _:
            return False


def closing(tail: Tail, newlines: int) -> Boundary:
    """The boundary after a word when nothing is known to follow it."""
    if newlines > 1:
        return Boundary.PARAGRAPH
    match tail:
        case Tail.CLAUSE | Tail.CLAUSE_UNLESS_DIGIT:
            return Boundary.CLAUSE
        case Tail.NONE | Tail.ATTACHED:
            return Boundary.SENTENCE if newlines else Boundary.FORCED
        case _:
            return Boundary.SENTENCE


def holds_together(last: Word, word: Word) -> bool:
    """Whether these belong to one number, amount, date or name: "555 0123", "22,1 €", "5 miles", "March 3"."""
    if not last.initial or not word.initial:
        return True
    if last.tail is Tail.CLAUSE_UNLESS_DIGIT and word.initial.isdigit():
        return True
    if last.final.isdigit():
        return not word.begins_phrase
    return word.initial.isdigit() and (last.counts or last.text.rstrip(".") in _BEFORE_NUMBERS)


def is_between_characters(last: Word, word: Word) -> bool:
    """Whether a script without spaces allows a cut here: between two of its characters, not after a number."""
    return (last.wide or word.wide) and not last.initial.isdigit() and not word.initial.isdigit()


def is_ordinal(word: Word, last: Word) -> bool:
    """Whether the stop of `word` is the one of "Chapter 3. The Storm"."""
    return last.counts and bool(_ORDINAL.fullmatch(word.text))


def is_list_number(word: str) -> bool:
    """Whether `word`, at the start of a line, numbers a list item: "1." or "2)"."""
    return bool(_LIST_NUMBER.fullmatch(word))


def line_goes_on(last: Word, following: Word) -> bool:
    """Whether a newline between these words only wraps a sentence."""
    if following.initial.islower():
        return True
    if last.tail in (Tail.CLAUSE, Tail.CLAUSE_UNLESS_DIGIT):
        return not last.text.endswith((":", ")"))
    return last.tail is Tail.ATTACHED or last.links


# Scripts written without spaces, where every character may be a place for a cut: Kana, Han.
WIDE = re.compile("[\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")

_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
_EN_DASH = "\N{EN DASH}"
_SENTENCE_ENDS = "。।॥\N{ARABIC FULL STOP}።"  # end a sentence whatever follows
_STRONG = "!?‼⁇⁈⁉؟" + _SENTENCE_ENDS
_TERMINATORS = ".…" + _STRONG
_CLOSING_QUOTES = f"\"'”»」』{_APOSTROPHE}\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
_CLOSING_BRACKETS = ")]}】》〉"
_CLOSERS = _CLOSING_QUOTES + _CLOSING_BRACKETS
_OPENERS = "\"'“«([{¿¡„「『【《〈\N{LEFT SINGLE QUOTATION MARK}\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
_CLAUSE_MARKS = ",;:、،؛—" + _EN_DASH
_DASHES = frozenset(("-", "--", "—", _EN_DASH))

_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_LAST_PART = re.compile(rf"[^-/{_EN_DASH}—(]*\Z")
_NUMBER_COMMA = re.compile(r"\d(?:st|nd|rd|th)?,\Z")  # "1, 2, 3", "March 3rd, 2024"
_ORDINAL = re.compile(r"\d{1,4}\.")
_LIST_NUMBER = re.compile(r"\d{1,3}[.)]")


def _tail(text: str) -> Tail:
    core = text.rstrip(_CLOSERS)
    body = core.rstrip(_TERMINATORS)
    run = core[len(body) :]
    if not run:
        return _clause_tail(text)
    closed = len(core) < len(text)
    if any(char in _SENTENCE_ENDS for char in run):
        return Tail.STOP
    if run == ".":
        return _full_stop_tail(body, closed)
    if closed or not any(char in _STRONG for char in run):
        return Tail.STOP_UNLESS_LOWER
    return Tail.STOP


def _clause_tail(text: str) -> Tail:
    if text in _DASHES:
        return Tail.CLAUSE_UNLESS_DIGIT if text in ("-", _EN_DASH) else Tail.CLAUSE  # "10 - 12"
    bare = text.rstrip(_CLOSING_QUOTES)
    if len(bare) > 1 and (bare[-1] in _CLOSING_BRACKETS or bare.endswith("--")):
        return Tail.CLAUSE_UNLESS_DIGIT if bare[-2:-1].isdigit() else Tail.CLAUSE  # "(555) 123"
    if not bare or bare[-1] not in _CLAUSE_MARKS:
        return Tail.NONE
    return Tail.CLAUSE_UNLESS_DIGIT if _NUMBER_COMMA.search(bare) else Tail.CLAUSE


def _full_stop_tail(body: str, closed: bool) -> Tail:
    last = _LAST_PART.search(body.lstrip(_OPENERS))
    word = last.group() if last else ""
    lower = word.lower()
    if word in _TITLES or lower in _ATTACHED:
        return Tail.ATTACHED
    if lower in _ABBREVIATIONS:
        return Tail.ABBREVIATION
    if lower in ("no", "nr", "nos"):
        return Tail.NUMERO
    if _DOTTED.fullmatch(word):
        return Tail.INITIALS
    return Tail.STOP_UNLESS_LOWER if closed else Tail.STOP


# Where a sentence ends inside a run without spaces: "one.Sentence", "12345.Let", "What?No", "好。Yes", "Wait...What".
_INNER_STOP = re.compile(
    rf"(?<=[^\W\d_A-Z][^\W\d_A-Z])\.(?=[A-Z](?:[a-z'{_APOSTROPHE}]|\Z))"
    rf"|\A[$€£]?\d[\d.,]*\.(?=[A-Z][a-z])"
    rf"|(?:[!?‼⁇⁈⁉]+|\.\.+|…+)[!?.…]*[{re.escape(_CLOSERS)}]*(?=[{re.escape(_OPENERS)}]*[A-Z])"
    rf"|[{_SENTENCE_ENDS}]+[!?.…]*[{re.escape(_CLOSERS)}]*(?=.)"
)
_LEADING_STOP = re.compile(rf"[!?…]+[{re.escape(_CLOSERS)}]*(?=.)")
_INNER_DASH = re.compile(rf"(?<=\w)[—{_EN_DASH}]+(?=[^\W\d_])")
_ADDRESS = re.compile(r"://|^\W*www\.|\w@\w|^\W*(?:\w[\w-]*\.)+[a-z]{2,}/", re.IGNORECASE)
_SUFFIX = re.compile(r"[A-Za-z]+")


def _inner_end(run: str) -> int:
    if _ADDRESS.search(run):
        return len(run)
    ends = [dash.end()] if (dash := _INNER_DASH.search(run)) else []
    for stop in _INNER_STOP.finditer(run):
        suffix = _SUFFIX.match(run, stop.end())
        if not (suffix and suffix.group().lower() in _NAME_SUFFIXES):  # "Booking.Com", "Node.Js"
            ends.append(stop.end())
            break
    return min(ends, default=len(run))


def _affordable(text: str) -> str:
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if seconds(text[:middle]) <= WORD_SECONDS else (low, middle - 1)
    return text[:low]


def _bare(text: str) -> str:
    return text.lstrip(_OPENERS).rstrip(",;:" + _CLOSERS)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_TITLES = _set("Gen Col Capt Lt Sgt Cpl Maj Adm Cmdr Rev Hon Gov Sen Rep Pres Mt Ft Fr Fig Figs Vol Ch Sec Art Eq Hr")
_ATTACHED = _set("dr mr mrs ms mx prof st messrs mme mlle sra dra vs cf viz approx e.g i.e pp z.b d.h u.a")
_ABBREVIATIONS = _set(
    "a.m p.m pm etc al inc ltd corp llc bros jr sr ph.d m.d b.a m.a b.c a.d b.c.e c.e dept univ est ave blvd rd jan feb"
    " apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri tel ext usw bzw eds esq hrs mins"
    " secs yrs lbs oz"
)
_NUMBERED = _set(
    "Chapter Section Part Book Act Scene Figure Table Article Appendix Volume Page Step Lesson Unit Level Phase"
    " Question Exercise Example Theorem Lemma Rule Item Point Episode Season Verse Track Round Day Week Kapitel Teil"
    " Chapitre Capítulo"
)
_CALENDAR = _set(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August"
    " September October November December EST EDT CST CDT MST MDT PST PDT GMT UTC CET CEST BST ET PT"
)
_BEFORE_NUMBERS = _CALENDAR | _set(
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec No no pp p vol USD EUR GBP plus minus ext extension"
)
_STARTERS = _set(
    "The This That These Those There Then They Their It Its It's He His She Her We Our You Your I I'm I've My A An And"
    " But Or So Yet If When While Where What Why Who How Which Because Since Although Though However Moreover Meanwhile"
    " Therefore Also In On At By For From To With Without After Before During Until As Not No Yes Now Today Yesterday"
    " Tomorrow Here Let Let's Please Some Many Most All Every Each Another Once Perhaps Maybe"
)
_PHRASE_STARTS = _set(
    "and or but nor so yet that which who whom whose where when while because since although though unless until if as"
    " than to for from with without of in on at by into onto over under about after before between through during"
    " against is are was were"
)
_LINKING_WORDS = _PHRASE_STARTS | _set("the a an my your his her its our their this these those very not no")
_NAME_SUFFIXES = _set(
    "ai app co com css de dev edu fm gg gov h html io js json me md net org py rs ts tv txt uk us xml"
)
