"""What holds for every text: nothing is lost, nothing is out of order, nothing raises."""

import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxgate.synth.segment import Mark, MarkKind
from voxgate.synth.text.normalize import numbers
from voxgate.synth.text.normalize.normalizer import normalize
from voxgate.synth.text.normalize.spoken import Spoken

PARTS = [
    "1", "12", "1,234", "3.14", "$", "€", "£", "%", "°", "C", "F", "km", "/", "-", "–", ":", ".", ",", ";", "(",
    ")", "+", "=", "<", ">", "#", "v", "am", "pm", "a.m.", "st", "th", "s", "½", "²", "x", "×", "Jan", "March",
    "May", "2024", "word", "2024-05-03", "3/4", "5:30", "Dr.", "No.", "IV", "Chapter", "Henry", "k", "M", "bn", "'",
    '"', "[", "]", "*", "_", "~", "^", "&", "\\", "|", "…", "你", "é", "İ", "ß", "Ⅷ", "①", "㎏", "℃", "№", "☃", "007",
    "٣", "𝟗", "192.168.1.1", "A4-17", "?", "!", "@", "０",
]  # fmt: skip
FRAGMENTS = st.lists(st.one_of(st.sampled_from(PARTS), st.sampled_from(["", " ", "\n"])), max_size=16).map("".join)
TEXTS = st.one_of(FRAGMENTS, st.text(st.characters(), max_size=30))


@given(TEXTS)
@settings(max_examples=400)
def test_no_digit_is_left_and_none_vanishes(text: str) -> None:
    spoken = normalize(text, "en").text

    assert not [char for char in spoken if unicodedata.category(char)[0] == "N"]
    if any(map(str.isalnum, text)) and not {"/", "@", ":"} & set(text):
        assert any(map(str.isalpha, spoken))


NUMBER_WORDS = frozenset([*numbers.ONES, *numbers.TENS, "half", "oh", "hundred", "first", "second", "third"])


@given(st.text("0123456789", min_size=1, max_size=24), st.sampled_from("  ,.-:/%$€°xkmA#("), st.integers(0, 99))
@settings(max_examples=400)
def test_every_number_is_spoken_by_number_words(number: str, sign: str, other: int) -> None:
    for text in (f"{number}{sign}{other}", f"a {sign}{number} b", f"a {number}{sign} b"):
        spoken = normalize(text, "en")
        said = [spoken.source(at)[0] for at, char in enumerate(spoken.text) if char.isalpha()]
        spans = [spoken.source(at) for at, char in enumerate(spoken.text) if char.isalpha()]
        assert all(any(start <= at < end for start, end in spans) for at, char in enumerate(text) if char.isdecimal())
        assert said


@given(TEXTS)
@settings(max_examples=300)
def test_the_way_back_is_in_order_and_inside_the_source(text: str) -> None:
    spoken = normalize(text, "en")
    spans = [spoken.source(at) for at in range(len(spoken.text))]

    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)


@given(
    st.lists(st.sampled_from([part for part in PARTS if part[0].isalnum() and part.isascii()]), max_size=8).map(
        " ".join
    )
)
def test_what_is_spoken_is_spoken_as_itself(text: str) -> None:
    once = normalize(text, "en").text

    assert normalize(once, "en").text == once


@given(st.text(st.characters(), max_size=30), st.sampled_from(["de", "zh", "xx", "en-GB", ""]))
def test_no_text_in_any_language_raises(text: str, language: str) -> None:
    assert isinstance(normalize(text, language), Spoken)


def test_words_are_found_again_in_what_the_client_sent() -> None:
    text = "Pay ５0€ to Dr. Who"
    spoken = normalize(text, "en")

    assert spoken.text == "Pay fifty euros to Doctor Who"
    assert [text[slice(*spoken.source(spoken.text.index(word)))] for word in ("fifty", "euros", "Doctor")] == [
        "５0€",
        "５0€",
        "Dr. ",
    ]
    assert spoken.source(spoken.text.index("Who")) == (15, 16)


@pytest.mark.parametrize(
    ("kind", "value", "spoken"),
    [
        (MarkKind.ALIAS, "World 3", "say World three now"),
        (MarkKind.SAY_AS, "characters", "say A two B now"),
        (MarkKind.SAY_AS, "unheard of", "say A two B now"),
        (MarkKind.PHONEMES, "ˈɛks", "say A two B now"),
    ],
)
def test_marks_say_how_their_words_are_spoken(kind: MarkKind, value: str, spoken: str) -> None:
    found = normalize("say A2B now", "en", [Mark(4, 7, kind, value)])

    assert found.text == spoken
    assert any(each.ipa == value for each in found.pronounced) is (kind is MarkKind.PHONEMES)


@pytest.mark.parametrize(
    ("how", "text", "spoken"),
    [("digits", "1984", "one nine eight four"), ("telephone", "555 01", "five five five, zero one"),
     ("cardinal", "1984", "one thousand nine hundred eighty-four"), ("ordinal", "3", "third"), ("ordinal", "x", "x")],
)  # fmt: skip
def test_a_number_is_read_as_the_markup_says(how: str, text: str, spoken: str) -> None:
    assert normalize(text, "en", [Mark(0, len(text), MarkKind.SAY_AS, how)]).text == spoken


def test_marks_that_lie_outside_the_text_or_over_one_another_are_ignored() -> None:
    marks = [Mark(0, 3, MarkKind.ALIAS, "x"), Mark(2, 5, MarkKind.ALIAS, "y"), Mark(4, 99, MarkKind.ALIAS, "z")]

    assert normalize("abc de", "en", marks).text == "x de"


def work(text: str) -> int:
    """Calls made, of Python and of C functions."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        normalize(text, "en")
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    "text", ["1", "a.", "1-", "$", "(1", "@a", "http://", "www.", "1,", "½", "Dr. ", "1/", "é²", "12 3 "]
)
def test_the_work_grows_as_the_text_does(text: str) -> None:
    assert work(text * 800) <= 4.5 * work(text * 200)
