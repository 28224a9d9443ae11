"""Web and mail addresses, handles, hashtags."""

import pytest

from voxgate.synth.text.normalize.normalizer import normalize


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("https://www.example.com/path?a=1.", "example dot com."),
        ("(see example.com)", "(see example dot com)"),
        ("http://user:secret@host.de:8080/x", "host dot D E"),
        ("john.doe99@gmail.com", "john dot doe ninety-nine at gmail dot com"),
        ("@user_1", "at user underscore one"),
        ("#MachineLearning2024", "hashtag Machine Learning twenty twenty-four"),
        ("#1", "number one"),
        ("node.js, file.txt", "node dot js, file dot txt"),
        ("end.Next", "end dot Next"),
    ],
)
def test_is_spoken(text: str, spoken: str) -> None:
    assert normalize(text, "en-US").text == spoken


def test_a_policy_says_what_is_said_of_addresses() -> None:
    text = "See https://example.com/a1 or a@b.org now."

    assert normalize(text, "en", urls="drop").text.split() == ["See", "or", "now."]
    assert normalize(text, "en", urls="spell").text == "See example dot com slash a one or a at B dot org now."
    assert normalize(text, "en").text == "See example dot com or a at B dot org now."


def test_an_address_too_long_to_write_down_is_not_spelled() -> None:
    assert normalize("https://example.com/" + "a" * 200, "en", urls="spell").text == "example dot com"
