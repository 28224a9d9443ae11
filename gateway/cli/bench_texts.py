"""What `voxgate bench` lets be said: sentences of a fixed shape and length, no two of them the same."""

import itertools
import random
from collections.abc import Iterator

_WORDS = (
    "amber basil birch cedar cider clove coral cumin daisy eagle ember fable flint grape hazel heron ivory lemon "
    "lilac linen lotus lunar maple melon olive onion peach pearl plume poppy raven river robin sable satin tulip"
)


class Names:
    """Words of five letters in ever new orders: what tells one sentence from every other while all last alike."""

    def __init__(self) -> None:
        self._pairs, self._triples = (self._shuffled(size) for size in (2, 3))

    def pair(self) -> tuple[str, ...]:
        return next(self._pairs)

    def triple(self) -> tuple[str, ...]:
        return next(self._triples)

    @staticmethod
    def _shuffled(size: int) -> Iterator[tuple[str, ...]]:
        orders = list(itertools.permutations(_WORDS.split(), size))
        random.Random(size).shuffle(orders)
        return itertools.cycle(orders)  # 1,260 pairs and 42,840 triples: more than a run of 300 rounds takes


def seven_words(names: Names) -> str:
    one, two, three = names.triple()
    return f"The {one} and {two} {three} is here."


def forty_words(names: Names) -> str:
    """One sentence; its first clause ends after nine words."""
    one, two, three = names.triple()
    return (
        f"When the {one} train from the {two} {three} arrives, please tell everyone on the platform that the doors "
        "will open on the left side today and that all the luggage has to be taken along until the very last stop."
    )


def twenty_characters(names: Names) -> str:
    one, two = names.pair()
    return f"You see {one} {two}."


def five_thousand_characters(names: Names) -> str:
    text = twenty_characters(names)
    while len(text) < 5000:
        text += " " + seven_words(names)
    return text[:4999] + "."
