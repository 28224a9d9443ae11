import pytest

from voxgate.synth.engines.alignment import Said, align
from voxgate.synth.speech import unpack_times
from voxgate.synth.text.normalize.normalizer import normalize


def aligned(text: str) -> dict[str, tuple[int, int]]:
    """Times of the words of `text` when every word of its reading takes 100 samples for each letter."""
    spoken = normalize(text, "en")
    said, at, place = [], 0, 0
    for word in spoken.text.split():
        place = spoken.text.index(word, place)
        length = 100 * sum(map(str.isalnum, word))
        if length:
            said.append(Said(at, at + length, place, place + len(word)))
        at += length
        place += len(word)
    times = unpack_times(align(text, spoken, said), len(text.split()))
    if times is None:
        assert not said
        return {}
    return {word: time for word, time in zip(text.split(), times, strict=True) if time[1] > time[0]}


def test_a_word_is_where_it_is_said():
    assert aligned("so — it is") == {"so": (0, 200), "it": (200, 400), "is": (400, 600)}


def test_what_is_written_out_takes_as_long_as_its_words():
    assert aligned("is $5 now") == {"is": (0, 200), "$5": (200, 1300), "now": (1300, 1600)}  # five dollars


def test_words_that_are_read_together_keep_their_own_time_where_they_are_said_as_written():
    assert aligned("on March 3") == {"on": (0, 200), "March": (200, 700), "3": (700, 1200)}  # third
    assert aligned("5 miles off") == {"5": (0, 400), "miles": (400, 900), "off": (900, 1200)}


def test_the_others_share_theirs_by_length():
    assert aligned("€ 50 now") == {"€": (0, 400), "50": (400, 1000), "now": (1000, 1300)}  # fifty euros


@pytest.mark.parametrize("text", ["", " ", "—"])
def test_nothing_said_has_no_time(text: str):
    assert aligned(text) == {}
