"""Dates and times of day."""

import pytest

from voxgate.synth.text.normalize.normalizer import normalize


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("3/4/2025", "March fourth, twenty twenty-five"),
        ("25/12/2024", "December twenty-fifth, twenty twenty-four"),
        ("5/6/24", "May sixth, twenty twenty-four"),
        ("2024-05-03", "May third, twenty twenty-four"),
        ("2024-05-03T10:30:00", "May third, twenty twenty-four ten thirty and zero seconds"),
        ("2024-13-45", "two zero two four, one three, four five"),
        ("12.05.2023", "May twelfth, twenty twenty-three"),
        ("Mar 3rd, 2024", "March third, twenty twenty-four"),
        ("May 5 and Jan. 5", "May fifth and January fifth"),
        ("Mar 2024", "March twenty twenty-four"),
        ("3 March 2025, 5th of May", "third of March, twenty twenty-five, fifth of May"),
        ("in 1984", "in nineteen eighty-four"),
        ("the 1990s, the '90s, 90's", "the nineteen nineties, the nineties, nineties"),
        ("5:30pm", "five thirty PM"),
        ("9 a.m. sharp", "nine AM sharp"),
        ("at 5 p.m.", "at five PM."),
        ("9am-5pm", "nine AM to five PM"),
        ("9:00-17:30", "nine o'clock to seventeen thirty"),
        ("7:05, 0:30, 23:59:01", "seven oh five, zero thirty, twenty-three fifty-nine and one second"),
        ("99:99", "ninety-nine: ninety-nine"),
        ("March on, Jan said. You may 5 times.", "March on, Jan said. You may five times."),
    ],
)
def test_is_spoken(text: str, spoken: str) -> None:
    assert normalize(text, "en-US").text == spoken
