import pytest

from voxgate.gateway.adapters.turns import DEAD, Turn, Turns


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [
        (["This is a test.", "And more."], "This is a test. And more."),
        (["This is a test.", "5 apples."], "This is a test. 5 apples."),
        (['He said "No."', "Then left."], 'He said "No." Then left.'),
        (["This is a test. ", "And more."], "This is a test. And more."),
        (["Hello", " there", ".", " And"], "Hello there. And"),
        (["example", ".", "com"], "example.com"),
        (["3", ".", "14"], "3.14"),
        (["the U", ".", "S", "."], "the U.S."),
        (["won", "derful"], "wonderful"),
        (["This is won", "derful"], "This is wonderful"),
        (["Yes.", "No."], "Yes. No."),
        (["", "Hello"], "Hello"),
    ],
)
def test_sentences_that_came_apart_are_not_run_together_and_tokens_are_not_torn(pieces: list[str], joined: str):
    turn = Turn("c1", "1")

    assert "".join(turn.text(piece) for piece in pieces) == joined


def test_what_was_flushed_is_apart_from_what_follows():
    turn = Turn("c1", "1")
    turn.text("One two")
    turn.flushed = True

    assert (turn.text("three"), turn.text("four")) == (" three", "four")


def test_an_id_belongs_to_the_turn_that_took_it_last():
    turns: Turns[Turn] = Turns()
    first = turns.add(Turn("c1", turns.new_name()))
    second = turns.add(Turn("c1", turns.new_name()))
    turns.remove(first)

    assert (turns.of_id("c1"), turns.of_name("1"), turns.of_name("2")) == (second, None, second)
    assert turns.live() == [second]


def test_what_still_comes_for_a_failed_turn_is_dead_until_its_end():
    turns: Turns[Turn] = Turns()
    turns.fail(turns.add(Turn("c1", turns.new_name())))

    assert turns.is_dead("c1", ends=False)
    assert turns.is_dead("c1", ends=True)
    assert not turns.is_dead("c1", ends=False)


def test_failed_turns_that_are_never_ended_do_not_fill_the_memory():
    turns: Turns[Turn] = Turns()
    for number in range(DEAD + 10):
        turns.fail(turns.add(Turn(f"c{number}", turns.new_name())))

    assert not turns.is_dead("c9", ends=False)
    assert turns.is_dead("c10", ends=False)
