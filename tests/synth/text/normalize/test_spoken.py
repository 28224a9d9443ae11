"""Where a spoken text came from, and the spaces it gets."""

from voxgate.synth.text.normalize.spoken import Pronunciation, Spoken, Writer


def test_copied_text_maps_code_point_for_code_point_and_written_out_text_to_all_it_stands_for() -> None:
    writer = Writer("a 22 b")
    writer.copy(0, 2)
    writer.say(2, 4, "twenty-two")
    writer.copy(4, 6)
    spoken = writer.finish()

    assert spoken.text == "a twenty-two b"
    assert [spoken.source(at) for at in (0, 1, 2, 11, 12, 13)] == [(0, 1), (1, 2), (2, 4), (2, 4), (4, 5), (5, 6)]


def test_words_are_kept_apart_from_what_stands_beside_them() -> None:
    writer = Writer("x5y")
    writer.copy(0, 1)
    writer.say(1, 2, "five")
    writer.copy(2, 3)

    assert writer.finish().text == "x five y"


def test_a_folded_text_maps_to_where_it_was_folded_from() -> None:
    writer = Writer("kg!", origin=[0, 0, 1, 2])
    writer.copy(0, 3)

    assert [writer.finish().source(at) for at in range(3)] == [(0, 0), (0, 1), (1, 2)]


def test_a_pronunciation_covers_the_words_without_their_space() -> None:
    writer = Writer("so A4")
    writer.copy(0, 2)
    writer.say(3, 4, "A", "ˈeɪ")

    assert writer.finish().pronounced == (Pronunciation(3, 4, "ˈeɪ"),)


def test_a_text_without_pieces_is_its_own_source() -> None:
    assert Spoken("abc").source(1) == (1, 2)
