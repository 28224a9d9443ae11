"""The operator's words: how they are read from a file, and where they are found."""

import os
from pathlib import Path

import pytest

from voxgate.synth.segment import Boundary, Mark, MarkKind, Segment
from voxgate.synth.text.lexicon import Lexicon, LexiconError, signature


def lexicon(tmp_path: Path, text: str) -> Lexicon:
    file = tmp_path / "lexicon.toml"
    file.write_text(text, encoding="utf-8")
    return Lexicon.load(file)


def segment(text: str, *marks: Mark) -> Segment:
    return Segment(0, text, 0, len(text), Boundary.START, Boundary.END, marks=marks)


def readings(words: Lexicon, text: str, voice: str = "heart", language: str = "en-US") -> list[tuple[str, str]]:
    return [(text[mark.start : mark.end], mark.value) for mark in words.apply(segment(text), voice, language).marks]


WORDS = """
[[word]]
text = "voxgate"
say = "vox gate"
[[word]]
text = "US"
say = "United States"
match_case = true
[[word]]
text = "tomato"
ipa = "təˈmeɪtoʊ"
language = "en"
[[word]]
text = "tomato"
ipa = "təˈmɑːtəʊ"
voice = "emma"
[[word]]
text = "New York"
say = "the city"
[[word]]
text = "New"
say = "knew"
[[word]]
text = ".NET"
say = "dot net"
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Voxgate, voxgate's and voxgates.", [("Voxgate", "vox gate"), ("voxgate", "vox gate")]),
        ("US and us", [("US", "United States")]),
        ("a new york and a new one", [("new york", "the city"), ("new", "knew")]),
        ("the .NET way", [(".NET", "dot net")]),
        ("the x.NET way", []),
        ("nothing", []),
    ],
)
def test_words_are_found_whole_and_the_longest_first(tmp_path: Path, text: str, found: list[tuple[str, str]]) -> None:
    assert readings(lexicon(tmp_path, WORDS), text) == found


def test_a_word_of_one_voice_or_language_is_for_that_alone(tmp_path: Path) -> None:
    words = lexicon(tmp_path, WORDS)

    assert readings(words, "tomato") == [("tomato", "təˈmeɪtoʊ")]
    assert readings(words, "tomato", voice="emma") == [("tomato", "təˈmɑːtəʊ")]
    assert readings(words, "tomato", language="de") == []
    assert readings(words, "tomato", language="eng") == []


def test_the_clients_own_marks_go_first(tmp_path: Path) -> None:
    own = Mark(0, 7, MarkKind.ALIAS, "mine")

    assert lexicon(tmp_path, WORDS).apply(segment("voxgate US", own), "heart", "en").marks == (
        own,
        Mark(8, 10, MarkKind.ALIAS, "United States"),
    )


def test_an_empty_lexicon_changes_nothing() -> None:
    text = segment("voxgate")

    assert Lexicon().apply(text, "heart", "en") is text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[word]]\ntext = 'x'", "needs one of say and ipa"),
        ("[[word]]\ntext = 'x'\nsay = 'y'\nipa = 'z'", "needs one of say and ipa"),
        ("[[word]]\ntext = '—'\nsay = 'y'", "no letter or digit"),
        ("[[word]]\ntext = 'x'\nsay = '—'", "nothing to speak"),
        ("[[word]]\ntext = 'x'\nsay = 'y'\n[[word]]\ntext = 'X'\nsay = 'z'", "there twice"),
        ("[[word]]\ntext = 'x'\nsays = 'y'", "says"),
        ("[[word", "lexicon.toml"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(LexiconError, match=problem) as refused:
        lexicon(tmp_path, text)
    assert "lexicon.toml" in str(refused.value)


def test_a_missing_file_is_refused_and_has_no_signature(tmp_path: Path) -> None:
    with pytest.raises(LexiconError, match="No such file"):
        Lexicon.load(tmp_path / "none.toml")
    assert signature(tmp_path / "none.toml") is None


def test_the_signature_changes_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "lexicon.toml"
    file.write_text("")
    before = signature(file)
    os.utime(file, ns=(1, 1))

    assert signature(file) != before
