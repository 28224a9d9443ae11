"""Numbers that are names: telephone numbers, versions, addresses of machines, "A4-17"; read sign by sign."""

import re

from . import quantities
from .numbers import ONES, cardinal, code_digits, digits

PHONE = re.compile(
    r"(?:\+\d{1,3}[ .-]?|1[ .-])?\(\d{2,5}\)[ .-]?\d{2,5}(?:[ .-]\d{2,5}){0,3}(?![\w]|[.-]\d)"  # (555) 123-4567
    r"|\+\d{1,4}(?:[ .-]?\(?\d{1,5}\)?){1,6}(?![\w])"  # +44 20 7946 0958
    r"|(?:1[ .-])?\d{3}([ .-])\d{3}\1\d{4}(?![\w]|[.-]\d)"  # 555-123-4567
    r"|\d{3}-\d{4}(?![\w]|[.-]\d)"  # 555-0123
)
GROUPS = re.compile(r"\d{2,6}(?:-\d{1,6}){2,7}(?![\w]|-\w)|\d{2,5}(?: \d{2,5}){2,5}(?![\w:%/]|[.,]\d)")
CALLED = re.compile(r"(?:\b(?:call|phone|tel|dial|text|fax|number)\b[^\d]{0,12})\Z", re.IGNORECASE)
AFTER_CALL = re.compile(r"\d{3,5}(?: \d{2,5}){1,4}|\d{5,15}")
IPV4 = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3})(?::(\d{1,5}))?(?:/(\d{1,2}))?(?![\w]|\.\d)")
VERSION = re.compile(r"\d++(?:\.\d++){2,}")
NAMED_VERSION = re.compile(r"[vV](\d++(?:\.\d++)*)")
CODE = re.compile(r"[A-Za-z0-9]++(?:[-_][A-Za-z0-9]++){0,8}")  # bounded: tried at each of its parts
_PART = re.compile(r"[A-Za-z]+|\d+")
_PHONE_CODE_POINTS = 24

LETTER_A_IPA = "ˈeɪ"  # alone before a word, "A" is read as the article


def phone(match: re.Match[str]) -> str:
    """Digit by digit, a pause between the groups."""
    plus = "plus " if match[0].startswith("+") else ""
    return plus + ", ".join(" ".join(ONES[int(char)] for char in group) for group in re.findall(r"\d+", match[0]))


def groups(match: re.Match[str]) -> str | None:
    """Long rows of groups: cards, accounts, telephone numbers of other countries."""
    found = re.findall(r"\d+", match[0])
    if " " in match[0] and (sum(map(len, found)) < 9 or not any(len(group) > 2 for group in found)):
        return None
    return phone(match)


def ipv4(match: re.Match[str]) -> str | None:
    if any(int(part) > 255 for part in match[1].split(".")):
        return None
    words = " dot ".join(digits(part) for part in match[1].split("."))
    port = f" port {digits(match[2])}" if match[2] else ""
    mask = f" slash {cardinal(match[3])}" if match[3] else ""
    return words + port + mask


def version(text: str) -> str:
    return " point ".join(cardinal(part) if len(part) < 3 else digits(part) for part in text.split("."))


def code(text: str) -> str | None:
    """Letters and digits in one word; None when it has only one of the two."""
    parts = _PART.findall(text)
    if not any(part[0].isdigit() for part in parts) or all(part.isdigit() for part in parts):
        return None
    if parts in (["mp", "3"], ["MP", "3"], ["mp", "4"], ["MP", "4"]):
        return f"M P {ONES[int(parts[1])]}"
    return " ".join(code_digits(part) if part.isdigit() else letters(part) for part in parts)


def letters(part: str) -> str:
    """A word as it is; what is none, letter by letter."""
    if len(part) < 4 and (part.isupper() or not set("aeiouyAEIOUY") & set(part)):
        return " ".join(part.upper())
    return part


def spelled(text: str) -> str:
    """Every letter, digit and sign by its name."""
    return " ".join(filter(None, map(sign, text)))


def sign(char: str) -> str:
    if char.isdecimal():
        return ONES[int(char)]
    if char in quantities.VULGAR:
        return quantities.vulgar(char)
    return char.upper() if char.isalpha() else SIGNS.get(char, "")


SIGNS = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", ":": "colon", "@": "at", "?": "question mark",
    "=": "equals", "&": "and", "#": "hash", "+": "plus", "%": "percent", "~": "tilde", "*": "star", ",": "comma",
    "!": "exclamation mark", ";": "semicolon", "\\": "backslash", "|": "bar", "$": "dollar", "(": "open parenthesis",
    ")": "close parenthesis", "'": "apostrophe", '"': "quote", "<": "less than", ">": "greater than", "^": "caret",
    "²": "squared", "³": "cubed",
}  # fmt: skip
