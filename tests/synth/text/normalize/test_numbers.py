"""English number words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.text.normalize import numbers
from voxgate.synth.text.normalize.numbers import ONES


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (305, "three hundred five"),
        (1_000, "one thousand"),
        (1_000_001, "one million one"),
        (999_999_999_999_999, "nine hundred ninety-nine trillion nine hundred ninety-nine billion nine hundred"
         " ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine"),
        (10**15, "one, zero zero zero, zero zero zero, zero zero zero, zero zero zero, zero zero zero"),
    ],
)  # fmt: skip
def test_cardinals(number: int, words: str) -> None:
    assert numbers.cardinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "zeroth"), (1, "first"), (12, "twelfth"), (20, "twentieth"), (22, "twenty-second"), (103, "one hundred third"),
     (1000, "one thousandth")],
)  # fmt: skip
def test_ordinals(number: int, words: str) -> None:
    assert numbers.ordinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(1984, "nineteen eighty-four"), (1900, "nineteen hundred"), (1905, "nineteen oh five"), (2000, "two thousand"),
     (2005, "two thousand five"), (2025, "twenty twenty-five")],
)  # fmt: skip
def test_years(number: int, words: str) -> None:
    assert numbers.year(number) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [("3.14", "three point one four"), ("1,234.50", "one thousand two hundred thirty-four point five zero"),
     (".5", "point five"), ("0.07", "zero point zero seven"), ("007", "zero zero seven"), ("5.", "five")],
)  # fmt: skip
def test_decimals_are_read_as_written(text: str, words: str) -> None:
    assert numbers.decimal(text) == words


@pytest.mark.parametrize(
    ("text", "value"), [("IV", 4), ("XIV", 14), ("XXXIX", 39), ("LVII", 57), ("IIII", 0), ("MIX", 0), ("", 0)]
)
def test_roman_numerals(text: str, value: int) -> None:
    assert numbers.roman(text) == value


def value_of(words: str) -> int:
    """The number that cardinal words name, read by the rules they are taught by."""
    tens = {word: 10 * at for at, word in enumerate(numbers.TENS)}
    total = group = 0
    for word in words.replace("-", " ").split():
        if word == "hundred":
            group *= 100
        elif word in numbers.SCALES:
            total, group = total + group * 1000 ** numbers.SCALES.index(word), 0
        else:
            group += ONES.index(word) if word in ONES else tens[word]
    return total + group


@given(st.integers(0, 10**numbers.MOST_DIGITS - 1))
def test_every_cardinal_says_its_number(number: int) -> None:
    assert value_of(numbers.cardinal(number)) == number


@given(st.text("0123456789", min_size=1, max_size=60))
def test_digits_says_each_of_them(text: str) -> None:
    assert [str(ONES.index(word)) for word in numbers.digits(text).replace(",", "").split()] == list(text)
