"""Web and mail addresses, @handles and #hashtags: what of them is said, by the policy of the operator."""

import re
from typing import Literal

from . import codes
from .quantities import VULGAR

Urls = Literal["short", "drop", "spell"]

_TOP = (
    "com org net edu gov mil int info biz io ai app dev co uk us de fr it es nl eu ch at ca au nz in jp cn br ru pl se"
    " no fi dk ie be pt cz tv me ly gg xyz tech cloud online site store blog"
).replace(" ", "|")
_LABEL = r"[A-Za-z0-9][A-Za-z0-9-]{0,62}"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{1,8}}"
URL = re.compile(
    rf"(?:[a-z][a-z0-9+.-]{{1,10}}://|www\.)[^\s<>\"]++|(?=[\d.-]*[A-Za-z]){_HOST}/[^\s<>\"]*+", re.IGNORECASE
)
DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL}){{0,4}}\.(?:{_TOP})(?![\w@]|-\w|\.\w)")
EMAIL = re.compile(rf"[\w.+%-]{{1,64}}@{_HOST}(?![\w@])")
HANDLE = re.compile(r"@(\w{1,64})")
HASHTAG = re.compile(r"#(\w{1,100})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@\s]*@)?|www\.", re.IGNORECASE)
_SPELLED_CODE_POINTS = 100  # nobody writes down more than that by ear
_TRAILING = ".,;:!?'\")]}…"
_WORDS = re.compile(rf"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_²³{''.join(VULGAR)}]+")
_SAID_TOP = frozenset(
    [
        "com",
        "org",
        "net",
        "edu",
        "gov",
        "mil",
        "info",
        "biz",
        "app",
        "dev",
        "tech",
        "cloud",
        "online",
        "site",
        "store",
        "blog",
    ]
)


def url_length(match: re.Match[str]) -> int:
    """Without the punctuation of the sentence it stands in."""
    text = match[0]
    return len(text.rstrip(_TRAILING.replace(")", "") if "(" in text else _TRAILING))


def url(text: str, policy: Urls) -> str:
    """ "short": the host, "example dot com"; "spell": all of it; "drop": nothing."""
    if policy == "drop":
        return ""
    host = text
    for _ in range(2):  # "https://", then "www."
        if prefix := _SCHEME.match(host):
            host = host[prefix.end() :]
    if policy == "spell" and len(host) <= _SPELLED_CODE_POINTS:
        return _said(host.rstrip("/"))
    return _host(re.split(r"[/?#:]", host, maxsplit=1)[0] or host)


def email(text: str, policy: Urls) -> str:
    if policy == "drop":
        return ""
    local, _, host = text.partition("@")
    return f"{_said(local)} at {_host(host)}"


def handle(match: re.Match[str]) -> str:
    return f"at {_said(match[1])}"


def hashtag(match: re.Match[str]) -> str | None:
    return f"hashtag {_said(match[1], underscore='')}" if any(map(str.isalpha, match[1])) else None


def _host(text: str) -> str:
    head, _, top = text.rstrip(".").rpartition(".")
    last = top if top.lower() in _SAID_TOP else codes.spelled(top) if len(top) < 4 else _said(top)
    return f"{_said(head)} dot {last}" if head else last


def _said(text: str, underscore: str = "underscore") -> str:
    """Words as words, digits by their number, everything else by its name."""
    out: list[str] = []
    at = 0
    for match in _WORDS.finditer(text):
        out += [_sign(char, underscore) for char in text[at : match.start()]]
        word = match[0]
        out.append(codes.code_digits(word) if word.isdecimal() else codes.letters(word))
        at = match.end()
    out += [_sign(char, underscore) for char in text[at:]]
    return " ".join(filter(None, out))


def _sign(char: str, underscore: str) -> str:
    return underscore if char == "_" else codes.sign(char)
