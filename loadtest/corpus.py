"""What a load test lets be said: English of our own, no clause of it ever said twice.

Owns sentences, names and lengths. Every clause holds three names in an order of its own, so that no cache of texts,
sentences or segments can answer; names all have five letters, so one sentence always has the same length. Pure.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_FIVE_LETTERS = (
    "Aaron Abbot Adele Agnes Alden Alice Allen Amber Annie April Arden Arlen Ashby Aspen Baker Barry Basil Becky "
    "Bella Berry Betsy Betty Billy Blair Blake Bonny Brent Brett Brian Brook Bruce Bruno Bryce Byron Caleb Candy "
    "Carla Carly Carol Casey Cathy Cedar Chase Chloe Cindy Clara Clark Cliff Clint Clive Clyde Cohen Colin Coral "
    "Corey Craig Daisy Damon Danny Darcy David Debby Della Derek Diana Diane Dixie Donna Doris Dylan Eddie Edgar "
    "Edith Edwin Elena Eliza Ellen Ellis Elsie Emery Emily Emmet Enoch Ethan Ethel Faith Felix Fiona Flora Floyd "
    "Frank Fritz Gavin Ginny Glenn Grace Grady Grant Greta Harry Haven Hazel Heath Heidi Helen Henry Hilda Homer "
    "Honey Irene Jacky Jacob James Jamie Janet Jason Jenny Jerry Jesse Jimmy Joyce Julia Karen Kathy Katie Kelly "
    "Kenny Kevin"
)
_NAMES = _FIVE_LETTERS.split()  # 128
_TRIPLES = len(_NAMES) ** 3
_STRIDE = 1_299_709  # odd, so coprime to 2^21: steps through all triples, and neighbours have nothing in common

# `@` is where names go. No clause is so long that a server has to cut it at a space, no sentence lasts over 7 s.
_SENTENCES = (
    "Good morning from @ at the front desk.",
    "The parcel for @ has just arrived.",
    "I have found the ticket that @ was asking about.",
    "Please tell @ that the table is ready now.",
    "There is a new message from @ waiting for you.",
    "The meeting with @ begins in a quarter of an hour.",
    "Nobody has seen @ since the lunch break was over.",
    "Your order was packed by @ and left the house today.",
    "The train that @ is on will reach us a little late.",
    "You can always ask @ when something is not clear.",
    "When the bus of @ arrives here, we will take the bags to @ at once.",
    "If you would rather speak with @ today, I can ask @ to call you back.",
    "The invoice was sent to @ last week, and a copy of it went to @ as well.",
    "While the kitchen waits for @ again, the guests of @ are having some tea.",
    "As far as the records of @ can tell, the keys were handed to @ in spring.",
    "The garden behind the house of @ is open, but the gate by @ stays closed.",
)
SENTENCES_OF: Mapping[str, tuple[int, int]] = {"short": (1, 1), "medium": (2, 4), "long": (7, 10)}


@dataclass(frozen=True, slots=True)
class Text:
    """`pieces`: offsets where what a server can speak of it ends: the first clause, then every sentence."""

    kind: str
    text: str
    pieces: tuple[int, ...]


class TextMaker:
    """One per stream. Of `of` makers with one seed, each takes every `of`-th triple of names and no other's."""

    def __init__(self, seed: int, number: int = 0, of: int = 1) -> None:
        self._random = random.Random(f"texts {seed} {number}")
        self._triples = _triples(random.Random(seed).randrange(_TRIPLES), number, of)

    def make(self, kind: str) -> Text:
        """A text of a kind that `SENTENCES_OF` knows."""
        text, pieces = "", list[int]()
        for template in self._random.choices(_SENTENCES, k=self._random.randint(*SENTENCES_OF[kind])):
            clauses = template.split(", ")
            spoken = ", ".join(clause.replace("@", next(self._triples)) for clause in clauses)
            if not text and len(clauses) > 1:
                pieces.append(spoken.index(",") + 1)
            text += (" " if text else "") + spoken
            pieces.append(len(text))
        return Text(kind, text, tuple(pieces))


def tokens(text: str) -> Iterator[str]:
    """`text` in the deltas of a language model: a word with the space before it, a long word in two. Joined: `text`."""
    begin = 0
    while begin < len(text):
        end = text.find(" ", begin + 1)
        end = len(text) if end < 0 else end
        if end - begin > 8:
            yield text[begin : (begin + end) // 2]
            begin = (begin + end) // 2
        yield text[begin:end]
        begin = end


def _triples(offset: int, number: int, of: int) -> Iterator[str]:
    """Three names at a time. All 2,097,152 orders come before one comes again."""
    while True:
        at = (offset + number * _STRIDE) % _TRIPLES
        rest, last = divmod(at, len(_NAMES))
        first, middle = divmod(rest, len(_NAMES))
        yield f"{_NAMES[first]} {_NAMES[middle]} {_NAMES[last]}"
        number += of
