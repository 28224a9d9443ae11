"""Abbreviations and Roman numerals."""

import pytest

from voxgate.synth.text.normalize.normalizer import normalize


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Dr. Smith and Mrs. Jones", "Doctor Smith and Missus Jones"),
        ("Main St. near St. Mary", "Main Street near Saint Mary"),
        ("e.g. a coat, i.e. that, etc.", "for example a coat, that is that, et cetera."),
        ("approx. 5 vs. 6", "approximately five versus six"),
        ("No. 5, pp. 3-7, fig. 2", "Number five, pages three to seven, figure two"),
        ("I said no.", "I said no."),
        ("We sat. On Sun. it sat.", "We sat. On Sun. it sat."),
        ("w/ milk, w/o tea, and/or", "with milk, without tea, and or"),
        ("Henry VIII, Chapter IV, World War II", "Henry the eighth, Chapter four, World War two"),
        ("Henry I think, I, V, MIX", "Henry I think, I, V, MIX"),
        ("NASA, U.S., Ph.D. and J. R. R. Tolkien", "NASA, U.S., Ph.D. and J. R. R. Tolkien"),
    ],
)
def test_is_spoken(text: str, spoken: str) -> None:
    assert normalize(text, "en-US").text == spoken
