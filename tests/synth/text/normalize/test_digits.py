"""Languages without a reader of their own."""

import pytest

from voxgate.synth.text.normalize.normalizer import normalize


@pytest.mark.parametrize(
    ("language", "spoken"),
    [
        ("de-DE", "Im Jahr zwei null zwei vier."),
        ("fr", "Im Jahr deux zéro deux quatre."),
        ("zh-CN", "Im Jahr 二 零 二 四."),
    ],
)
def test_digits_are_spoken_one_by_one(language: str, spoken: str) -> None:
    assert normalize("Im Jahr 2024.", language).text == spoken


def test_digits_of_a_language_nobody_knows_are_left_to_the_engine() -> None:
    assert normalize("abc 12", "tlh").text == "abc 12"
