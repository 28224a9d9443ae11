"""English text into hibari's phonemes, and which of them say which part of the text.

Owns how the G2P is called: what it must not see, what it breaks on, how its tokens lie in the text. Knows no sound.
"""

from dataclasses import dataclass

from hibari.g2p import G2P
from hibari.tts import Hibari

from ..text.normalize.spoken import Spoken
from .ipa import from_ipa

MAX_PHONEMES = 400  # of one run, as in hibari

PAUSES = frozenset(";:,.!?—…")
SILENT_PHONEMES = PAUSES | frozenset('"()“” ')
# Square brackets reach the G2P as round ones, which it reads alike: `[word](/phonemes/)` would be executed.
PLAIN = str.maketrans({"[": "(", "]": ")", "’": "'"})
UNLINKED = frozenset("[]().!?…")  # would end the link, or the sentence inside of it
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Part:
    """The phonemes `begin` to `end` say the text `start` to `stop`."""

    begin: int
    end: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """What the network is given at once. `parts` are in order; None: which part says what is not known."""

    phonemes: str
    parts: tuple[Part, ...] | None


class Pronouncer:
    def __init__(self, g2p: G2P, vocabulary: dict[str, int]) -> None:
        self._g2p = g2p
        self._vocabulary = vocabulary

    def phrases(self, spoken: Spoken) -> list[Phrase]:
        """One for each sentence, none over `MAX_PHONEMES` and none that makes no sound."""
        plain, places = self._plain(spoken)
        phrases: list[Phrase] = []
        at = 0
        for sentence in Hibari.split_sentences(plain):
            at = plain.index(sentence, at)
            shown = [place for place in places[at : at + len(sentence)] if place != _NOWHERE]
            phrases += self._pieces(*self._pronounce(sentence, shown))
            at += len(sentence)
        return [phrase for phrase in phrases if self.sounds(phrase.phonemes)]

    def sounds(self, phonemes: str) -> bool:
        return any(p in self._vocabulary and p not in SILENT_PHONEMES for p in phonemes)

    def _plain(self, spoken: Spoken) -> tuple[str, list[int]]:
        """The text as the G2P takes it, with single spaces; and for each code point its place in `spoken.text`.

        `[word](/phonemes/)` stands where a pronunciation is known, and nowhere else.
        """
        text = spoken.text.translate(PLAIN)
        out: list[str] = []
        places: list[int] = []

        def add(piece: str, start: int | None) -> None:
            out.append(piece)
            places.extend([_NOWHERE] * len(piece) if start is None else range(start, start + len(piece)))

        at = 0
        for each in spoken.pronounced:
            phonemes = from_ipa(each.ipa, self._vocabulary)
            word = spoken.text[each.start : each.end]
            if each.start < at or not phonemes or UNLINKED & set(word):
                continue
            start = each.start + len(word) - len(word.lstrip())
            add(text[at : each.start], at)
            add("[", None)
            add(word.strip(), start)
            add(f"](/{phonemes}/)", None)
            at = each.end
        add(text[at:], at)
        return _with_single_spaces("".join(out), places)

    def _pronounce(self, sentence: str, shown: list[int]) -> tuple[str, tuple[Part, ...] | None]:
        """Phonemes, and what they say; a word the G2P breaks on ("0th", a number of forty digits) is spelled out."""
        phonemes, parts, used = "", [], 0
        for text, said, space in self._tokens(sentence):
            size = len(text) - text.count(" ")
            begin = len(phonemes)
            phonemes += said + space
            if size and used + size <= len(shown):
                parts.append(Part(begin, begin + len(said), shown[used], shown[used + size - 1] + 1))
            used += size
        return phonemes, tuple(parts) if used == len(shown) else None

    def _tokens(self, sentence: str) -> list[tuple[str, str, str]]:
        """(text, phonemes, the space behind) of each token."""
        try:
            tokens = self._g2p.phonemize_tokens(self._g2p.tokenize(sentence))
        except (ValueError, IndexError):
            pieces = sentence.split()
            if len(pieces) == 1:
                pieces = list(sentence)
            if len(pieces) == 1:
                raise
            return [token for piece in pieces for token in [*self._tokens(piece), ("", "", " ")]]
        return [(token.text, token.phonemes or "", " " if token.whitespace else "") for token in tokens]

    def _pieces(self, phonemes: str, parts: tuple[Part, ...] | None) -> list[Phrase]:
        """Cut at spaces into what the network takes."""
        pieces: list[Phrase] = []
        begin, size = 0, len(phonemes)
        while begin < size:
            end = size
            if len(phonemes[begin:].strip()) > MAX_PHONEMES:
                begin += len(phonemes[begin:]) - len(phonemes[begin:].lstrip())
                end = phonemes.rfind(" ", begin, begin + MAX_PHONEMES) + 1 or begin + MAX_PHONEMES
            pieces.append(_piece(phonemes, parts, begin, end))
            begin = end
        return pieces


def _piece(phonemes: str, parts: tuple[Part, ...] | None, begin: int, end: int) -> Phrase:
    piece = phonemes[begin:end]
    begin += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if parts is not None:
        within = (part for part in parts if part.begin < begin + len(piece) and part.end > begin)
        parts = tuple(
            Part(max(part.begin - begin, 0), min(part.end - begin, len(piece)), part.start, part.stop)
            for part in within
        )
    return Phrase(piece, parts)


def _with_single_spaces(text: str, places: list[int]) -> tuple[str, list[int]]:
    """`" ".join(text.split())` with the places of what is left; spaces have none."""
    out: list[str] = []
    kept: list[int] = []
    at = 0
    for word in text.split():
        at = text.index(word, at)
        if out:
            kept.append(_NOWHERE)
        out.append(word)
        kept += places[at : at + len(word)]
        at += len(word)
    return " ".join(out), kept
