"""What stands in a text and is not spelled as it is spoken."""

import pytest

from voxgate.synth.text.normalize.normalizer import normalize


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        (
            "It costs $3.50 on 3/4/2025 at 5:30pm, call 555-0123.",
            "It costs three dollars and fifty cents on March fourth, twenty twenty-five at five thirty PM, call"
            " five five five, zero one two three.",
        ),
        ("Nothing special here, is there? (No.)", "Nothing special here, is there? (No.)"),
        ("1,000,000 of 12345", "one million of twelve thousand three hundred forty-five"),
        ("1,2,3 or 1, 2, 3", "one, two, three or one, two, three"),
        ("3,5 metres", "three point five metres"),
        ("1st, 22ND, 1,000th", "first, twenty-second, one thousandth"),
        ("0th", "zeroth"),
        ("8...", "eight…"),
        ("Wait... what", "Wait… what"),
        ("2+2=4, a=b", "two plus two equals four, a equals b"),
        ("a < b, 3 > 2, x <= 5", "a less than b, three greater than two, x less than or equal to five"),
        (
            "10 - 3 = 7, 10 - 12, 1990–2000",
            "ten minus three equals seven, ten to twelve, nineteen ninety to two thousand",
        ),
        ("-5, +5, ±5, ~5", "minus five, plus five, plus or minus five, about five"),
        ("x -> y -- z", "x to y — z"),
        ("C#, C++, R&D", "C sharp, C plus plus, R and D"),
        ("he/she, AC/DC, foo_bar", "he slash she, AC DC, foo bar"),
        ("№5, 2^10, ∞", "number five, two to the power of ten, infinity"),
        ("« oui » well-known", '" oui " well-known'),
    ],
)
def test_is_spoken(text: str, spoken: str) -> None:
    assert normalize(text, "en-US").text == spoken
