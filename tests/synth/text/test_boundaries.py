"""What the end of a word says, and what the next one decides."""

import pytest

from voxgate.synth.text.boundaries import (
    WORD_CODE_POINTS,
    WORD_SECONDS,
    Tail,
    clause_ends,
    is_list_number,
    is_ordinal,
    line_goes_on,
    read,
    read_separate,
    sentence_ends,
)


@pytest.mark.parametrize(
    ("word", "tail"),
    [
        ("word", Tail.NONE),
        ("well,", Tail.CLAUSE),
        ("well;", Tail.CLAUSE),
        ("(well)", Tail.CLAUSE),
        ('"well,"', Tail.CLAUSE),
        ("—", Tail.CLAUSE),
        ("-", Tail.CLAUSE_UNLESS_DIGIT),
        ("--", Tail.CLAUSE),
        ("(555)", Tail.CLAUSE_UNLESS_DIGIT),
        ("3rd,", Tail.CLAUSE_UNLESS_DIGIT),
        ("first-class", Tail.NONE),
        ("22,", Tail.CLAUSE_UNLESS_DIGIT),
        ("end.", Tail.STOP),
        ("v1.0.0.", Tail.STOP),
        ("36.5℃。”", Tail.STOP),
        ("What?!", Tail.STOP),
        ("well...", Tail.STOP_UNLESS_LOWER),
        ("well…", Tail.STOP_UNLESS_LOWER),
        ('"No!"', Tail.STOP_UNLESS_LOWER),
        ("a.m.", Tail.ABBREVIATION),
        ("(etc.", Tail.ABBREVIATION),
        ("U.S.", Tail.INITIALS),
        ("J.", Tail.INITIALS),
        ("No.", Tail.NUMERO),
        ("Dr.", Tail.ATTACHED),
        ("(e.g.", Tail.ATTACHED),
        ("Fig.", Tail.ATTACHED),
        ("fig.", Tail.STOP),
    ],
)
def test_tail_of_a_word(word: str, tail: Tail) -> None:
    assert read_separate(word).tail is tail


@pytest.mark.parametrize(
    ("last", "following", "ends"),
    [
        ("end.", "and", True),
        ("well...", "you", False),
        ("well...", "You", True),
        ("well...", "—", False),
        ("a.m.", "sharp", False),
        ("a.m.", "Bring", True),
        ("a.m.", "Monday.", False),
        ("U.S.", "Capitol", False),
        ("U.S.", "However,", True),
        ("J.", "Tolkien", False),
        ("No.", "5", False),
        ("No.", "Never", True),
        ("Dr.", "The", False),
        ("well,", "The", False),
    ],
)
def test_sentence_ends_between_words(last: str, following: str, ends: bool) -> None:
    assert sentence_ends(read_separate(last).tail, read_separate(following)) is ends


@pytest.mark.parametrize(
    ("last", "following", "ends"),
    [("well,", "you", True), ("1,", "2", False), ("1,", "and", True), ("well...", "you", True), ("Dr.", "Who", False)],
)
def test_clause_ends_between_words(last: str, following: str, ends: bool) -> None:
    assert clause_ends(read_separate(last).tail, read_separate(following)) is ends


@pytest.mark.parametrize(
    ("run", "first"),
    [
        ("one.Sentence", "one."),
        ("12345.Let", "12345."),
        ("$1,234.56.Then", "$1,234.56."),
        ("What?No", "What?"),
        ('"Go!"Then', '"Go!"'),
        ("Wait...What", "Wait..."),
        ("36.5℃。”OK", "36.5℃。”"),
        ("word—another", "word—"),
        ("3.14", "3.14"),
        ("U.S.A", "U.S.A"),
        ("Ph.D", "Ph.D"),
        ("one.sentence", "one.sentence"),
        ("Booking.Com", "Booking.Com"),
        ("https://a.bc/De?Fg", "https://a.bc/De?Fg"),
        ("www.ab.Cd", "www.ab.Cd"),
        ("ab.Cd@ef.gh", "ab.Cd@ef.gh"),
    ],
)
def test_run_without_spaces_is_split_after_a_sentence(run: str, first: str) -> None:
    assert read_separate(run).text == first


def test_stop_after_a_character_without_spaces_stands_alone() -> None:
    assert read("?yes", glued=True, continued=False).text == "?"
    assert read("?yes", glued=False, continued=False).text == "?yes"


def test_piece_of_a_long_run_is_not_split() -> None:
    assert read("ab.Cd", glued=False, continued=True).text == "ab.Cd"


def test_word_is_never_longer_than_a_segment() -> None:
    word = read_separate("9" * WORD_CODE_POINTS)
    assert 0 < len(word.text) < WORD_CODE_POINTS
    assert WORD_SECONDS - 1 < word.seconds <= WORD_SECONDS
    assert word.tail is Tail.NONE


def test_numbers_that_count_do_not_end_sentences() -> None:
    assert is_ordinal(read_separate("3."), read_separate("Chapter"))
    assert not is_ordinal(read_separate("3."), read_separate("have"))
    assert is_list_number("1.")
    assert is_list_number("2)")
    assert not is_list_number("1234.")


@pytest.mark.parametrize(
    ("last", "following", "goes_on"),
    [
        ("went", "on", True),
        ("Apples", "Pears", False),
        ("the", "Middle", True),
        ("then,", "John", True),
        ("list:", "Apples", False),
        ("Dr.", "Who", True),
        ("cost", "3", False),
    ],
)
def test_newline_wraps_a_sentence_or_ends_it(last: str, following: str, goes_on: bool) -> None:
    assert line_goes_on(read_separate(last), read_separate(following)) is goes_on
