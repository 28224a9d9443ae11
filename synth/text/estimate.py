"""How long a word takes to say, guessed from its spelling alone; knows neither voices nor segments.

Calibrated against the bundled voice (hibari 0.2.1, voice at speed 1, sound between the -45 dBFS points):
101 letters in 22 words 5.5 s, "1234567890" 5.1 s, "12345" 2.1 s, "2024" 0.9 s, "$1,234.56" 3.7 s, twenty ones 9.8 s,
"https://example.com/a.b?c=1" 4.1 s, "NASA" 0.4 s, "XQZT KLMP" 1.4 s. The guess leans to the long side for digits and
spelled letters, because a segment that turns out long keeps every other listener waiting.
"""

import unicodedata

_LETTER = 0.05
_CAPITAL = 0.12  # acronyms are spelled
_SYLLABLE = 0.22  # a Han character, a Hangul block
_KANA = 0.13
_DIGIT = 0.45
_SYMBOL = 0.35  # spoken as a word: $ % ° / @ = & + #
_POINT = 0.25  # between digits or letters: "point", "dot"
_WORD = 0.05
_CLOSING = ".!?…,;:\N{EM DASH}\N{EN DASH}\"')]}”\N{RIGHT SINGLE QUOTATION MARK}»"
_CLAUSE_PAUSE = 0.15
_SENTENCE_PAUSE = 0.35


def seconds(word: str) -> float:
    """Estimated seconds of speech for one word with the punctuation around it."""
    total = _WORD
    capitals = 0
    for char in word:
        if "a" <= char <= "z":
            total += _LETTER
        elif "A" <= char <= "Z":
            capitals += 1
        else:
            total += _other(char)
    total += capitals * (_CAPITAL if capitals > 1 else _LETTER)
    stripped = word.rstrip(_CLOSING)
    total += _POINT * sum(char in ".,:" for char in stripped)
    if len(stripped) < len(word):
        total += _SENTENCE_PAUSE if any(char in ".!?…" for char in word[len(stripped) :]) else _CLAUSE_PAUSE
    return total


def _other(char: str) -> float:
    category = unicodedata.category(char)
    if category[0] == "N":
        return _DIGIT
    if category == "Lo":
        return _KANA if "\u3040" <= char <= "\u30ff" else _SYLLABLE if char >= "\u1100" else _LETTER
    if category[0] == "L":
        return _LETTER
    if category[0] == "S" or char in "/@%&#":
        return _SYMBOL
    if char in "。、":
        return _SENTENCE_PAUSE if char == "。" else _CLAUSE_PAUSE
    return 0.0
