"""What becomes spaces, what stays, and that nothing moves."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.text.blank import Blanked, Blanker, blank, is_speakable

LATIN = ("Latin",)


def spoken(text: str, scripts: tuple[str, ...] = LATIN) -> str:
    """The blanked text with its runs of spaces as one, for reading."""
    blanked = blank(text, scripts).text
    assert len(blanked) == len(text)
    return " ".join(blanked.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold** and *it* and __both__ and _one_", "bold and it and both and one"),
        ("`code` and ~~gone~~", "code and gone"),
        ("snake_case", "snake_case"),
        ("about ~5", "about ~5"),
        ("# Title\n## Two\nC# and #1", "Title Two C# and #1"),
        ("- one\n* two\n  + three\n• four\n– five", "one two three four five"),
        ("-5 degrees, a - b", "-5 degrees, a - b"),
        ("> quoted\n> - item", "quoted item"),
        ("```python\nx = 1\n```\nafter", "x = 1 after"),
        ("```x``` inline", "x inline"),
        ("see [the docs](https://a.b/c_(d)?e=1#f) now", "see the docs now"),
        ('see [the docs](https://a.b "A title") now', "see the docs now"),
        ("![a cat](cat.png) sits", "a cat sits"),
        ("say [word](/wɜːd/) once", "say word once"),
        ("call f[i](x and y)", "call f i x and y)"),
        ("see [1] and [2", "see 1 and 2"),
        ("什么？[uv_break]好的", "什么? 好的"),
        ("[Stts][spk_emb]hi[laugh_0]", "hi"),
        ("［uv_break］hi", "hi"),
        ("[this_name_is_too_long_for_a_tag]", "this_name_is_too_long_for_a_tag"),
        ('<break time="9999s"/>hi <b>you</b><|end|><!-- no -->', "hi you"),
        ("if a < b and c<d then 5 > 3", "if a < b and c<d then 5 > 3"),
        ("I <3 you", "I <3 you"),
        ("hi 😊👍🏽👩‍💻🇫🇷 you", "hi you"),
        ("1️⃣ first", "1 first"),
        ("98.6°F 36.5℃ №5 5㎏ ½ m²", "98.6°F 36.5℃ №5 5㎏ ½ m²"),
        ("a\0b\x1fc\x7fd", "a b c d"),
        ("a\u200bb\ufeffc", "a b c"),
        ("a \ud800 b", "a b"),
        ("tab\there", "tab here"),
        ("Title\n=====\ntext", "Title text"),
        ("wait..... what?!?!?! no!!!!!", "wait... what?!?!?! no!!!"),
        ("a ===== b -----", "a === b ---"),
    ],
)
def test_marks_and_controls_are_blank(text: str, expected: str) -> None:
    assert spoken(text, ("Latin", "Han")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Ｃ区１号柜１６９号", "C区1号柜169号"), ("٣ و", "3 و"), ("ＯＫ！", "OK!"), ("a\u3000b", "a b")],
)
def test_full_width_forms_and_digits_are_their_plain_selves(text: str, expected: str) -> None:
    assert blank(text, ("Latin", "Han", "Arabic")).text == expected


@pytest.mark.parametrize("newline", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c"])
def test_every_kind_of_newline_is_one(newline: str) -> None:
    assert blank(f"a{newline}- b", LATIN).text == "a\n  b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say привет now", Blanked("Say        now", ((4, 10),))),
        ("добрый день, мир", Blanked("           ,    ", ((0, 11), (13, 16)))),
        ("GPT-4写code", Blanked("GPT-4 code", ((5, 6),))),
        ("हिन्दी ok", Blanked("       ok", ((0, 6),))),
        ("e\u0301te\u0301 и\u0306", Blanked("e\u0301te\u0301   ", ((6, 8),))),
        ("**мир** x", Blanked("        x", ((2, 5),))),
        ("🙂 fine", Blanked("  fine", ())),
    ],
)
def test_words_in_other_scripts_are_blank_and_reported(text: str, expected: Blanked) -> None:
    assert blank(text, LATIN) == expected


def test_letters_common_to_all_scripts_pass() -> None:
    assert blank("5 µm, ª º, 𝐱", LATIN) == Blanked("5 µm, ª º, 𝐱", ())


@pytest.mark.parametrize(("text", "speakable"), [("", False), (" …—*()😊\"'\n", False), ("8...", True), ("ж", True)])
def test_speakable_is_what_has_a_letter_or_number(text: str, speakable: bool) -> None:
    assert is_speakable(text) is speakable


def test_every_letter_and_number_of_unicode_is_speakable_and_nothing_else() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        assert is_speakable(char) is (unicodedata.category(char)[0] in "LN")


# Properties.

MARKUP = st.lists(
    st.one_of(
        st.sampled_from(list("[]()<>*_`~#!-|/\\\"'=: \nab1é好ж😊\u0301\ud800\0")),
        st.sampled_from(["[uv_break]", "](/x/)", "<b c='d'>", "<!--", "```py\n", "[a](", "https://a.b", "<|x|>"]),
    ),
    max_size=40,
).map("".join)
TEXTS = st.one_of(MARKUP, st.text(st.characters(), max_size=40))


@given(TEXTS)
def test_blank_keeps_length_and_digits(text: str) -> None:
    blanked = blank(text, LATIN)
    assert len(blanked.text) == len(text)
    for before, after in zip(text, blanked.text, strict=True):
        assert after == before or after in " \n" or unicodedata.normalize("NFKC", before) == after or after.isdecimal()


@given(TEXTS)
def test_what_is_dropped_is_blank_and_in_order(text: str) -> None:
    blanked = blank(text, LATIN)
    ends = [0]
    for start, end in blanked.dropped:
        assert ends[-1] <= start < end
        assert blanked.text[start:end].isspace()
        ends.append(end)


@given(TEXTS)
def test_no_control_tag_or_pronunciation_reaches_an_engine(text: str) -> None:
    blanked = blank(text, LATIN).text
    assert "[" not in blanked
    assert "](" not in blanked
    assert not set(blanked) & set("\0\ud800*`")


@given(TEXTS, st.integers(1, 5))
def test_pieces_are_blanked_as_the_whole(text: str, size: int) -> None:
    blanker = Blanker(LATIN)
    pieces = [blanker.push(text[at : at + size]) for at in range(0, len(text), size)]
    assert Blanked("".join(pieces) + blanker.push("", final=True), tuple(blanker.dropped)) == blank(text, LATIN)


@pytest.mark.parametrize("opening", ["[uv_", "<a b='", "](http://", "```", "<!--", "######", "!", "_"])
def test_an_opening_that_never_closes_swallows_nothing(opening: str) -> None:
    text = opening + "word " * 200
    blanker = Blanker(LATIN)
    pieces = [blanker.push(char) for char in text]
    assert len(blanker.held) < 20
    assert "".join(pieces).split().count("word") >= 198
