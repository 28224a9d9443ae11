"""English dates and times of day, as patterns and what is said for a match; None where it is no date after all."""

import re

from .numbers import ONES, cardinal, ordinal, plain, year

MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip
_NAMES = {name[:3]: name for name in MONTHS} | {name: name for name in MONTHS} | {"Sept": "September"}
_month = "|".join(sorted(_NAMES, key=len, reverse=True))
MONTH_WORDS = frozenset(_NAMES)

ISO = re.compile(r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})(?!\d|[-/]\d)(?:T(?=\d{2}:))?")
NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/]|[.-]\d)")
MONTH_DAY = re.compile(
    rf"({_month})\.? (\d{{1,2}})(?:st|nd|rd|th)?(?![\d:%.,]\d|\d|\w)(?:(,?) (\d{{4}})(?![\w]|[.,]\d))?(?! ?[ap]\.?m\b)"
)
MONTH_YEAR = re.compile(rf"({_month})\.?,? (\d{{4}})(?![\w]|[.,]\d)")
DAY_MONTH = re.compile(
    rf"(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_month})(?!\w)(?:\.(?= [\d]))?(?:,? (\d{{4}})(?![\w]|[.,]\d))?"
)
DECADE = re.compile(r"['’]?(\d{2}0|\d{3}0|\d0)['’]?s(?!\w)")
TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(?: ?([ap])\.?m\b(\.(?= [a-z]|,))?)?(?![\d:])", re.IGNORECASE)
HOUR = re.compile(r"(\d{1,2}) ?([ap])\.?m\b(\.(?= [a-z]|,))?", re.IGNORECASE)


def iso(match: re.Match[str]) -> str | None:
    return _date(int(match[3]), int(match[4]), match[1])


def numeric(match: re.Match[str]) -> str | None:
    """Month first, as Americans write; day first between full stops, as only others write."""
    first, separator, second, full = int(match[1]), match[2], int(match[3]), match[4]
    if separator != "/" and len(full) == 2:
        return None
    month, day = (second, first) if separator == "." or first > 12 else (first, second)
    if len(full) == 2:
        full = ("19" if full > "50" else "20") + full
    return _date(month, day, full)


def month_day(match: re.Match[str]) -> str | None:
    return _date(MONTHS.index(_NAMES[match[1]]) + 1, int(match[2]), match[4])


def month_year(match: re.Match[str]) -> str:
    return f"{_NAMES[match[1]]} {plain(match[2])}"


def day_month(match: re.Match[str]) -> str | None:
    day, name = int(match[1]), match[2]
    if not 1 <= day <= 31:
        return None
    return f"{ordinal(day)} of {_NAMES[name]}" + (f", {plain(match[3])}" if match[3] else "")


def decade(match: re.Match[str]) -> str | None:
    text = match[1]
    if len(text) == 3:
        return None
    words = year(int(text)) if len(text) == 4 and text >= "1100" else cardinal(text)
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def time(match: re.Match[str]) -> str | None:
    hour, minute, second, half = int(match[1]), int(match[2]), match[3], match[4]
    if hour > 24 or minute > 59 or (second and int(second) > 59):
        return None
    if minute == 0:
        words = (
            cardinal(hour)
            if half or second
            else f"{cardinal(hour)} o'clock"
            if 0 < hour <= 12
            else f"{cardinal(hour)} hundred"
        )
    elif minute < 10:
        words = f"{cardinal(hour)} oh {ONES[minute]}"
    else:
        words = f"{cardinal(hour)} {cardinal(minute)}"
    if second:
        words += f" and {cardinal(second)} second{'' if int(second) == 1 else 's'}"
    return words + _half(half)


def hour(match: re.Match[str]) -> str | None:
    return cardinal(match[1]) + _half(match[2]) if int(match[1]) <= 24 else None


def _half(letter: str | None) -> str:
    return f" {letter.upper()}M" if letter else ""


def _date(month: int, day: int, full: str | None) -> str | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return f"{MONTHS[month - 1]} {ordinal(day)}" + (f", {plain(full)}" if full else "")
