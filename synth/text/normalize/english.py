"""Reads English aloud on paper: finds what is not spelled as it is spoken, and has it written out.

One pass from left to right; at each place the first rule that matches wins and what it took is not looked at again, so
the time is linear and every digit meets some rule. Knows no segments, voices or engines.
"""

import re
import unicodedata
from collections.abc import Callable

from . import abbreviations, addresses, codes, moments, numbers, quantities
from .addresses import Urls
from .spoken import Writer

Say = Callable[[re.Match[str]], str | None]
Rule = tuple[re.Pattern[str], Say]

# Words, spaces and ordinary punctuation up to the next thing that may need writing out.
_LETTERS = rf"[^\W\d_²³{''.join(quantities.VULGAR)}]++"
_WORD = re.compile(rf"{_LETTERS}(?:['’-]{_LETTERS})*+")
_ORDINARY = re.compile(rf"{_WORD.pattern}(?=[ ,;!?\"”)\n]|:(?!/)|\.(?!\w)|\Z)")
_AMOUNT = re.compile(r"[.,]?\d|[%€$£°\w]")  # what follows a number that is not to be called
_QUIET = frozenset(" ,.;:!?…\"'“”‘’()—\n")
_HYPHENS = frozenset("-‐‑–−")

_DIGIT_RULES: list[Rule] = [
    (moments.ISO, moments.iso),
    (moments.NUMERIC, moments.numeric),
    (moments.TIME, moments.time),
    (moments.HOUR, moments.hour),
    (moments.DAY_MONTH, moments.day_month),
    (codes.IPV4, codes.ipv4),
    (codes.PHONE, codes.phone),
    (codes.GROUPS, codes.groups),
    (moments.DECADE, moments.decade),
    (quantities.MONEY_AFTER, quantities.money),
    (quantities.MIXED, quantities.mixed),
    (quantities.MIXED_SLASH, quantities.mixed),
    (quantities.FRACTION, quantities.fraction),
    (quantities.FEET, quantities.feet),
    (quantities.DEGREES, quantities.degrees),
    (quantities.PERCENT, quantities.percent),
    (quantities.MEASURE, quantities.measure),
    (quantities.SCALED, quantities.scaled),
    (quantities.DIMENSIONS, quantities.dimensions),
    (re.compile(r"(\d[\d,]{0,30})(?:st|nd|rd|th|ST|ND|RD|TH)(?!\w)"), lambda m: numbers.ordinal(m[1].replace(",", ""))),
    (quantities.GROUPED, lambda match: numbers.cardinal(match[0].replace(".", ""))),
    (codes.VERSION, lambda match: codes.version(match[0])),
    (quantities.EUROPEAN, quantities.european),
    (codes.CODE, lambda match: codes.code(match[0])),
    (re.compile(rf"({numbers.NUMBER})(?:['’]s(?!\w))"), lambda match: numbers.plain(match[1]) + "'s"),
    (re.compile(numbers.NUMBER), lambda match: numbers.plain(match[0])),
    (re.compile(r"\d++"), lambda match: numbers.plain(match[0])),
]
_LETTER_RULES: list[Rule] = [
    (moments.MONTH_DAY, moments.month_day),
    (moments.MONTH_YEAR, moments.month_year),
    (abbreviations.TITLE, abbreviations.title),
    (abbreviations.NUMBERED, abbreviations.numbered),
    (abbreviations.DOTTED, abbreviations.dotted),
    (abbreviations.BARE, abbreviations.bare),
    (abbreviations.ROMAN, abbreviations.roman_numeral),
    (quantities.MONEY, quantities.money),
    (quantities.RATE, quantities.rate),
    (re.compile(r"([CF])#(?!\w)"), lambda match: f"{match[1]} sharp"),
    (re.compile(r"C\+\+(?!\w)"), lambda match: "C plus plus"),
    (re.compile(r"and/or(?!\w)"), lambda match: "and or"),
    (re.compile(r"[Vv]ersion v(\d++(?:\.\d++)*)"), lambda match: f"version {codes.version(match[1])}"),
    (codes.NAMED_VERSION, lambda match: f"version {codes.version(match[1])}"),
    (codes.CODE, lambda match: codes.code(match[0])),
]
_SIGN_RULES: list[Rule] = [
    (codes.PHONE, codes.phone),
    (quantities.MONEY, quantities.money),
    (moments.DECADE, moments.decade),
    (re.compile(r"\.(\d++)(?!\.\d)"), lambda match: numbers.decimal(match[0])),
    (addresses.HANDLE, addresses.handle),
    (addresses.HASHTAG, addresses.hashtag),
    (re.compile(r"#(?=\d)"), lambda match: "number "),
    (re.compile(r"<=|=<|≤"), lambda match: " less than or equal to "),
    (re.compile(r">=|≥"), lambda match: " greater than or equal to "),
    (re.compile(r"!=|≠|=/="), lambda match: " not equal to "),
    (re.compile(r"[-=]+>|[→⇒]"), lambda match: " to "),
    (re.compile(r"<[-=]+|[←⇐]"), lambda match: " from "),
    (re.compile(r"={1,3}"), lambda match: " equals "),
    (re.compile(r"\+/-|±"), lambda match: " plus or minus "),
    (re.compile(r"\.{2,}"), lambda match: "…"),
    (re.compile(r"--+"), lambda match: " — "),
]
_SIGNS = {
    "<": "less than", ">": "greater than", "×": "times", "÷": "divided by", "+": "plus", "%": "percent",
    "‰": "per mille",    "&": "and", "@": "at", "#": "hash", "~": "about", "≈": "approximately", "∞": "infinity",
    "√": "the square root of",
    "∑": "the sum of", "∫": "the integral of", "∂": "partial", "∆": "delta", "∈": "in", "∅": "the empty set",
    "°": "degrees",    "§": "section", "¶": "paragraph", "№": "number", "⁄": "over", "/": "slash", "\\": "backslash",
    "^": "to the power of",    "²": "squared", "³": "cubed", "†": "", "‡": "", "·": "times", "∙": "times",
    "⋅": "times", "µ": "micro",
    "℃": "degrees Celsius",    "℉": "degrees Fahrenheit", "Ω": "ohms",
}  # fmt: skip
_KEPT = frozenset(".,;:!?…—\"'“”‘’()-\n ")
_OPENING = frozenset("«‹„‚")
_CLOSING = frozenset("»›")


def read(text: str, writer: Writer, urls: Urls, start: int, end: int) -> None:
    """Write `text[start:end]`."""
    at = start
    while at < end:
        char = text[at]
        if char in _QUIET and not (char in ".'’!" or (char == "(" and text[at + 1 : at + 2].isdecimal())):
            writer.copy(at, at + 1)
            at += 1
        elif char.isalpha():
            at = _letters(text, at, end, writer, urls)
        elif char.isdecimal():
            at = _digits(text, at, end, writer, urls)
        else:
            at = _sign(text, at, start, end, writer)


def _letters(text: str, at: int, end: int, writer: Writer, urls: Urls) -> int:
    ordinary = _ORDINARY.match(text, at, end)
    if ordinary and not _is_known(ordinary[0], text, ordinary.end()):
        writer.copy(at, ordinary.end())
        return ordinary.end()
    if _begins(text, at):
        if length := _address(text, at, end, writer, urls):
            return at + length
        if stop := _first(_LETTER_RULES, text, at, end, writer):
            return stop
    word = _WORD.match(text, at, end)
    stop = word.end() if word else at + 1
    if stop < end and text[stop] == "/" and stop + 1 < end and text[stop + 1].isalnum():
        writer.copy(at, stop)
        writer.say(stop, stop + 1, " " if text[at:stop].isupper() else " slash ")
        return stop + 1
    writer.copy(at, stop)
    return stop


def _is_known(word: str, text: str, stop: int) -> bool:
    following = text[stop : stop + 1]
    if following == "." and word in abbreviations.FIRST_WORDS:
        return True
    return word in _KNOWN and following != ""


_KNOWN = frozenset(
    [
        *moments.MONTH_WORDS,
        *abbreviations.ROMAN_WORDS,
        *[
            "version",
            "Version",
            "Dr",
            "Mr",
            "Mrs",
            "Ms",
            "St",
            "Mt",
            "vs",
            "USD",
            "EUR",
            "GBP",
            "JPY",
            "INR",
            "RUB",
            "CHF",
            "et",
        ],
    ]
)


def _address(text: str, at: int, end: int, writer: Writer, urls: Urls) -> int:
    if mail := addresses.EMAIL.match(text, at, end):
        writer.say(at, mail.end(), addresses.email(mail[0], urls))
        return mail.end() - at
    if url := addresses.URL.match(text, at, end) or addresses.DOMAIN.match(text, at, end):
        length = addresses.url_length(url)
        writer.say(at, at + length, addresses.url(text[at : at + length], urls))
        return length
    return 0


def _digits(text: str, at: int, end: int, writer: Writer, urls: Urls) -> int:
    if _begins(text, at):
        called = codes.AFTER_CALL.match(text, at, end)
        if called and codes.CALLED.search(text, max(0, at - 24), at) and not _AMOUNT.match(text, called.end(), end):
            writer.say(at, called.end(), codes.phone(called))
            return called.end()
        run = re.match(r"[\w.+%-]{1,64}[@.]", text[at : min(at + 66, end)])
        if run and re.search(r"[A-Za-z]", text[at : at + 80]) and (length := _address(text, at, end, writer, urls)):
            return at + length
    stop = _first(_DIGIT_RULES, text, at, end, writer)
    assert stop  # the last rule takes every digit
    return stop


def _first(rules: list[Rule], text: str, at: int, end: int, writer: Writer) -> int:
    """Where the first rule that has words for `text[at:]` stops; 0: none has."""
    for pattern, say in rules:
        if match := pattern.match(text, at, end):
            words = say(match)
            if words is not None and match.end() > at:
                _say(at, match.end(), words, writer)
                return match.end()
    return 0


def _say(start: int, end: int, words: str, writer: Writer) -> None:
    if words.startswith("A "):  # "A4": the letter, which before a word reads like the article
        writer.say(start, end, "A", codes.LETTER_A_IPA)
        words = words[1:]
    writer.say(start, end, words)


def _sign(text: str, at: int, start: int, end: int, writer: Writer) -> int:
    char = text[at]
    before, after = text[at - 1] if at > start else " ", text[at + 1] if at + 1 < end else " "
    if char in _HYPHENS and after != ">" and (stop := _dash(text, at, end, before, after, writer)):
        return stop
    if char == "+" and after.isdecimal() and not before.isalnum() and not codes.PHONE.match(text, at, end):
        writer.say(at, at + 1, "plus ")
        return at + 1
    if char == "." and before.isalnum() and after.isalnum():
        if before.islower() and text[at + 1 : at + 3].isalnum():
            writer.say(at, at + 1, "dot")
        elif before.isalpha():
            writer.copy(at, at + 1)
        else:
            writer.say(at, at + 1, ".")
        return at + 1
    if stop := _first(_SIGN_RULES, text, at, end, writer):
        return stop
    if char in quantities.VULGAR:
        writer.say(at, at + 1, quantities.vulgar(char))
    elif char in quantities.SIGNS:
        writer.say(at, at + 1, f" {quantities.currency(char)} ")
    elif char in _SIGNS:
        writer.say(at, at + 1, f" {_SIGNS[char]} ")
    elif char in _KEPT:
        writer.copy(at, at + 1)
    elif unicodedata.category(char)[0] == "N":
        writer.say(at, at + 1, f" {_numeric(char)} ")
    elif unicodedata.category(char)[0] in "LM":
        writer.copy(at, at + 1)
    else:
        writer.say(at, at + 1, '"' if char in _OPENING | _CLOSING else " ")
    return at + 1


def _dash(text: str, at: int, end: int, before: str, after: str, writer: Writer) -> int:
    """A minus, the "to" of a range, or a hyphen; 0: leave it to the other rules."""
    if after.isdecimal() or (after in quantities.SIGNS and text[at + 2 : at + 3].isdecimal()):
        if before.isalnum() or before in "%°" + quantities.SIGNS:
            writer.say(at, at + 1, " to ")
            return at + 1
        if after in quantities.SIGNS:
            return 0
        if text[at] != "–":
            writer.say(at, at + 1, "minus ")
            return at + 1
    if before == " " and after == " " and text[at - 2 : at - 1].isdecimal() and text[at + 2 : at + 3].isdecimal():
        subtraction = text[at] == "−" or "=" in text[at : min(at + 16, end)]
        writer.say(at, at + 1, "minus" if subtraction else "to")
        return at + 1
    if text[at] == "–" or (before == " " and after == " "):
        writer.say(at, at + 1, "—" if before == " " else " — ")
        return at + 1
    if text[at] == "-" and after != "-":
        if before.isalnum() and after.isalnum():
            writer.copy(at, at + 1)
        else:
            writer.say(at, at + 1, " ")
        return at + 1
    return 0


def _begins(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum()


def _numeric(char: str) -> str:
    value = unicodedata.numeric(char)
    return numbers.cardinal(int(value)) if value == int(value) else numbers.decimal(f"{value:.3f}".rstrip("0"))
