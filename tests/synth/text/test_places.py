from voxgate.synth.segment import Boundary
from voxgate.synth.text import boundaries
from voxgate.synth.text.limits import CLAUSE_FROM_SECONDS, PHRASE_FROM_SECONDS
from voxgate.synth.text.places import Places

HOUSE, AND, NUMBER = (boundaries.read_separate(word) for word in ("house", "and", "42"))


def test_a_clause_is_better_than_a_phrase_and_that_than_a_space():
    places = Places()
    assert places.good() is None
    places.note_space(10, HOUSE, HOUSE, False, 3, 1.0)
    assert places.good() == (10, Boundary.FORCED)
    places.note_space(20, HOUSE, AND, False, 6, PHRASE_FROM_SECONDS)
    places.note_space(30, HOUSE, HOUSE, False, 7, PHRASE_FROM_SECONDS)
    assert places.good() == (20, Boundary.FORCED)
    places.note_clause(25, False, CLAUSE_FROM_SECONDS)
    assert places.good() == (25, Boundary.CLAUSE)


def test_a_number_has_no_place_inside():
    places = Places()
    places.note_space(10, NUMBER, NUMBER, False, 3, 1.0)

    assert places.good() is None


def test_an_early_clause_is_only_for_want_of_better():
    places = Places()
    places.note_clause(5, True, 9.0)

    assert places.good() is None
    assert places.bearable() == (5, Boundary.CLAUSE)


def test_places_move_with_the_text():
    places = Places()
    places.note_space(10, HOUSE, HOUSE, False, 3, 1.0)
    places.note_clause(4, True, 1.0)
    places.shift(6)

    assert places.good() == (4, Boundary.FORCED)
    assert places.bearable() is None
