import re

import pytest

from voxgate.gateway.cli.bench_texts import (
    Names,
    five_thousand_characters,
    forty_words,
    seven_words,
    twenty_characters,
)


@pytest.mark.parametrize(
    ("text", "words"), [(twenty_characters, 4), (seven_words, 7), (forty_words, 40)], ids=lambda value: str(value)[:20]
)
def test_a_sentence_is_never_said_twice_and_always_as_long(text, words):
    names = Names()
    said = [text(names) for _ in range(300)]

    assert len(set(said)) == 300
    assert {len(one) for one in said} == {len(said[0])}
    assert {len(one.split()) for one in said} == {words}


def test_the_short_text_is_twenty_characters_and_the_long_one_five_thousand_that_start_alike():
    names = Names()
    short, long = twenty_characters(names), five_thousand_characters(names)

    assert (len(short), len(long)) == (20, 5000)
    assert re.sub(r"\w{5}", "_", long[:20]) == re.sub(r"\w{5}", "_", short)


def test_the_long_sentence_has_a_clause_end_within_twelve_words():
    sentence = forty_words(Names())

    assert sentence.index(",") == len(" ".join(sentence.split()[:9])) - 1
    assert sentence.count(".") == 1


def test_no_sentence_of_the_long_text_repeats():
    names = Names()
    sentences = [one for _ in range(20) for one in five_thousand_characters(names)[:4990].split(". ")[:-1]]

    assert len(set(sentences)) == len(sentences)
