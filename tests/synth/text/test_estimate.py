"""The guess against what the bundled voice takes."""

import pytest

from voxgate.synth.text.estimate import seconds

# Text and the seconds between its first and last sound above -45 dBFS, from the bundled voice at speed 1.
SPOKEN = [
    ("The capital of France is Paris, a city known for its art, fashion and food.", 4.25),
    ("In 2023, the company reported revenue of $4.7 billion, up 12% from 2022.", 7.25),
    ("Call me at 555-0199 before 9:30 a.m. on March 3rd, please.", 5.77),
    ("NASA and ESA launched the JWST on an Ariane 5 from Kourou in French Guiana.", 5.60),
    ("He said he would, she said she could, and they all agreed that it was fine by them in the end.", 4.86),
    ("1234567", 3.83),
    ("https://www.example.com/path", 3.56),
]


@pytest.mark.parametrize(("text", "spoken_s"), SPOKEN)
def test_guess_is_near_what_the_voice_takes(text: str, spoken_s: float) -> None:
    assert 0.75 * spoken_s <= sum(map(seconds, text.split())) <= 1.3 * spoken_s


def test_words_that_are_said_longer_are_guessed_longer() -> None:
    assert seconds("a") < seconds("word") < seconds("internationalization")
    assert seconds("word") < seconds("word,") < seconds("word.")
    assert seconds("98") < seconds("1998") < seconds("1,998")
    assert seconds("nasa") < seconds("NASA")
    assert 0.0 < seconds("(") < seconds("%") < seconds("好好")
