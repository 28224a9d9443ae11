import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.loadtest.corpus import SENTENCES_OF, TextMaker, tokens


def clauses(text: str) -> list[str]:
    return [clause for sentence in text.split(". ") for clause in sentence.rstrip(".").split(", ")]


def test_no_clause_is_ever_said_twice_whoever_says_it():
    makers = [TextMaker(7, number, 3) for number in range(3)]
    said = [clause for maker in makers for _ in range(300) for clause in clauses(maker.make("medium").text)]

    assert len(set(said)) == len(said) > 2000


@pytest.mark.parametrize("kind", SENTENCES_OF)
def test_the_kind_is_the_number_of_sentences(kind):
    least, most = SENTENCES_OF[kind]
    counts = {TextMaker(1, number, 40).make(kind).text.count(".") for number in range(40)}

    assert {least, most} <= counts
    assert min(counts) >= least
    assert max(counts) <= most


def test_the_same_sentence_is_always_as_long():
    maker = TextMaker(3)
    lengths = {len(text) for _ in range(500) if (text := maker.make("short").text).startswith("The parcel")}

    assert lengths == {len("The parcel for Alice Baker Clark has just arrived.")}


@given(st.integers(0, 1 << 40), st.integers(0, 9), st.sampled_from(list(SENTENCES_OF)))
def test_pieces_are_the_first_clause_and_every_sentence(seed, number, kind):
    made = TextMaker(seed, number, 10).make(kind)
    ends = [at + 1 for at, mark in enumerate(made.text) if mark == "."]
    first = [made.text.index(",") + 1] if "," in made.text[: ends[0]] else []

    assert list(made.pieces) == first + ends
    assert made.text[: made.pieces[0]].count(" ") >= 3  # four words: enough for a first cut


def test_a_seed_repeats_its_texts():
    one, again, other = TextMaker(5), TextMaker(5), TextMaker(6)

    assert [one.make("long") for _ in range(9)] == [again.make("long") for _ in range(9)]
    assert one.make("long") != other.make("long")


@given(st.text(st.sampled_from("ab ,.")))
def test_tokens_joined_are_the_text(text):
    assert "".join(tokens(text)) == text


def test_a_token_is_a_word_with_the_space_before_it():
    spoken = "You can always ask about interconnections."

    assert list(tokens(spoken)) == ["You", " can", " always", " ask", " about", " intercon", "nections."]
