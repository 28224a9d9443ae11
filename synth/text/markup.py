"""The markup a client may use: an allow-list of SSML elements and what each of them means.

Owns the syntax of tags and elements and the meaning of their attributes. Where they stand, and that everything else in
angle brackets is neither executed nor spoken, is the filter's (blank.py).
"""

import re

from ..segment import MarkKind

TAG_CODE_POINTS = 64  # longest tag; "<" waits no longer than this for its ">"
CONTENT_CODE_POINTS = 40  # longest text that is read another way: a name, not a sentence
PAUSE_SECONDS = 3.0  # longest pause at one place: whoever listens must not think that the line is dead

_STRENGTHS = {"none": 0.0, "x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 0.75, "x-strong": 1.0}
_READINGS = frozenset(("characters", "spell-out", "verbatim", "digits", "telephone", "cardinal", "number", "ordinal"))
_NAMES = "phoneme|sub|say-as"

# Possessive quantifiers: matched in linear time whatever is inside.
_NAME = r"[A-Za-z_:][\w:.-]*+"
_ATTRIBUTE = rf"""\s++{_NAME}\s*+=\s*+(?:"[^"<>\n]*+"|'[^'<>\n]*+'|[^\s"'<>]++)"""
_ATTRIBUTE_BEGUN = rf"""\s*+(?:/|{_NAME}(?:\s*+(?:=\s*+(?:"[^"<>\n]*+|'[^'<>\n]*+)?)?)?)?"""
TAG = re.compile(rf"<(?:/?{_NAME}(?:{_ATTRIBUTE})*\s*+/?|\|[^|<>\n]{{1,32}}\||!--[^<>]*+)>")
OPEN_TAG = re.compile(
    rf"<(?:/?(?:{_NAME}(?:{_ATTRIBUTE})*{_ATTRIBUTE_BEGUN})?|\|[^|<>\n]{{0,32}}\|?|!(?:-(?:-[^<>]*+)?)?)"
)
_BREAK = re.compile(rf"<break(?:{_ATTRIBUTE})*\s*+/?>")
_ELEMENT_TAG = re.compile(rf"<(?P<name>{_NAMES})(?:{_ATTRIBUTE})+\s*+>")
_CONTENT = re.compile(rf"[^<>\n]{{1,{CONTENT_CODE_POINTS}}}+")
_ATTRIBUTES = re.compile(rf"""({_NAME})\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'<>/]++))""")
_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)(ms|s)")


def pause_of(tag: str) -> float:
    """Seconds of `<break time="300ms"/>` or `<break strength="weak"/>`; 0 for every other tag."""
    if not _BREAK.fullmatch(tag):
        return 0.0
    attributes = _attributes(tag)
    if (time := attributes.get("time")) is not None:
        found = _TIME.fullmatch(time.strip())
        seconds = float(found[1]) / (1000 if found[2] == "ms" else 1) if found else 0.0
    else:
        seconds = _STRENGTHS.get(attributes.get("strength", "medium"), 0.0)
    return min(seconds, PAUSE_SECONDS)


def reading_of(tag: str) -> tuple[MarkKind, str] | None:
    """What the opening tag of an allowed element says of its text."""
    if not _ELEMENT_TAG.fullmatch(tag):
        return None
    attributes = _attributes(tag)
    match tag[1:].split(maxsplit=1)[0]:
        case "phoneme" if attributes.get("alphabet", "ipa") == "ipa" and attributes.get("ph"):
            return MarkKind.PHONEMES, attributes["ph"]
        case "sub" if attributes.get("alias"):
            return MarkKind.ALIAS, attributes["alias"]
        case "say-as" if attributes.get("interpret-as") in _READINGS:
            return MarkKind.SAY_AS, attributes["interpret-as"]
        case _:
            return None


def element_end(source: str, at: int, name: str, final: bool) -> tuple[int, int] | None:
    """Where the text of element `name` that begins at `at` ends, and where its closing tag does.

    (0, 0): it has no end that counts; None: more text is needed.
    """
    content = _CONTENT.match(source, at)
    stop = content.end() if content else at
    closing = f"</{name}>"
    if source.startswith(closing, stop):
        return (stop, stop + len(closing)) if content else (0, 0)
    if final or (stop - at >= CONTENT_CODE_POINTS and stop == len(source)):
        return 0, 0
    rest = source[stop : stop + len(closing)]
    return None if closing.startswith(rest) and stop + len(rest) == len(source) else (0, 0)


def _attributes(tag: str) -> dict[str, str]:
    return {name: first or second or third for name, first, second, third in _ATTRIBUTES.findall(tag)}
