"""Which tags mean something, and what."""

import pytest

from voxgate.synth.segment import MarkKind
from voxgate.synth.text.markup import PAUSE_SECONDS, TAG, element_end, pause_of, reading_of


@pytest.mark.parametrize(
    ("tag", "seconds"),
    [
        ('<break time="300ms"/>', 0.3),
        ("<break time='1.5s' />", 1.5),
        ("<break time=2s>", 2.0),
        ("<break/>", 0.5),
        ('<break strength="x-strong"/>', 1.0),
        ('<break strength="none"/>', 0.0),
        ('<break time="9999s"/>', PAUSE_SECONDS),
        ('<break time="soon"/>', 0.0),
        ('<break time="-1s"/>', 0.0),
        ("</break>", 0.0),
        ('<breaker time="1s"/>', 0.0),
    ],
)
def test_break_is_a_pause_within_bounds(tag: str, seconds: float) -> None:
    assert TAG.fullmatch(tag)
    assert pause_of(tag) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("tag", "reading"),
    [
        ('<phoneme alphabet="ipa" ph="təˈmeɪtoʊ">', (MarkKind.PHONEMES, "təˈmeɪtoʊ")),
        ("<phoneme ph='x'>", (MarkKind.PHONEMES, "x")),
        ('<phoneme alphabet="x-sampa" ph="x">', None),
        ('<sub alias="World Wide Web">', (MarkKind.ALIAS, "World Wide Web")),
        ("<sub>", None),
        ('<say-as interpret-as="digits">', (MarkKind.SAY_AS, "digits")),
        ('<say-as interpret-as="vxml:currency">', None),
        ("<emphasis>", None),
        ('<audio src="x">', None),
    ],
)
def test_only_allowed_elements_say_how_their_text_is_read(tag: str, reading: tuple[MarkKind, str] | None) -> None:
    assert TAG.fullmatch(tag)
    assert reading_of(tag) == reading


@pytest.mark.parametrize(
    ("source", "final", "end"),
    [
        ("W3C</sub> x", False, (3, 9)),
        ("W3C</su", False, None),
        ("W3C</su", True, (0, 0)),
        ("W3C", False, None),
        ("W3C<b>", False, (0, 0)),
        ("W3C\n</sub>", False, (0, 0)),
        ("x" * 41 + "</sub>", False, (0, 0)),
        ("x" * 40, False, (0, 0)),
        ("</sub>", False, (0, 0)),
    ],
)
def test_text_of_an_element_is_short_and_closed(source: str, final: bool, end: tuple[int, int] | None) -> None:
    assert element_end(source, 0, "sub", final) == end
