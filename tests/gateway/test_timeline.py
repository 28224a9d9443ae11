import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voxgate.gateway.timeline import Timeline, Word
from voxgate.synth.segment import Boundary, Segment
from voxgate.synth.speech import Speech, pack_times

RATE = 24000


def segment(text: str, start: int = 0) -> Segment:
    return Segment(0, text, start, start + len(text), Boundary.START, Boundary.END)


def sound(silence_s: float, voiced_s: float, tail_s: float = 0.0) -> Speech:
    parts = [np.zeros(round(silence_s * RATE)), np.full(round(voiced_s * RATE), 5000), np.zeros(round(tail_s * RATE))]
    return Speech(np.concatenate(parts).astype(np.int16))


def test_words_share_the_voiced_part_by_their_length():
    words = Timeline(RATE).append(segment("Hello, you"), sound(0.5, 1.1, 0.3))

    assert words == (Word("Hello,", 0.5, 1.2, 0), Word("you", 1.2, 1.6, 7))


def test_words_are_where_the_engine_says():
    speech = Speech(sound(0, 2).pcm, pack_times([(2400, 12_000), (0, 0), (14_400, 48_000)]))
    timeline = Timeline(RATE)
    timeline.append(segment("Yes. "), sound(0, 1))

    words = timeline.append(segment("Hello, — you", start=5), speech)

    assert words == (Word("Hello,", 1.1, 1.5, 5, estimated=False), Word("you", 1.6, 3.0, 14, estimated=False))
    assert [timeline.text_offset_at(seconds) for seconds in (1.2, 1.31, 2.2, 2.4)] == [5, 11, 11, 17]


def test_times_of_another_number_of_words_are_not_believed():
    speech = Speech(sound(0, 1).pcm, pack_times([(0, 12_000)]))

    words = Timeline(RATE).append(segment("Hello you"), speech)

    assert [(word.text, word.estimated) for word in words] == [("Hello", True), ("you", True)]


def test_later_segments_follow_in_time_and_text():
    timeline = Timeline(RATE)
    timeline.append(segment("One. "), sound(0, 1))
    (word,) = timeline.append(segment("Two.", start=5), sound(0, 1))

    assert word == Word("Two.", 1.0, 2.0, 5)
    assert (timeline.seconds, timeline.samples, timeline.text_end) == (2.0, 48_000, 9)


def test_punctuation_and_blanks_are_no_words():
    assert [word.text for word in Timeline(RATE).append(segment("  — Yes …   no "), sound(0, 1))] == ["Yes", "no"]


def test_silence_has_no_words():
    assert Timeline(RATE).append(segment("Hm"), sound(1, 0)) == ()


def test_the_text_heard_ends_with_the_last_word_half_heard():
    timeline = Timeline(RATE)
    timeline.append(segment("aaa bbb ccc. "), sound(0, 3))
    timeline.append(segment("ddd", start=13), sound(0, 1))

    heard = ["aaa bbb ccc. ddd"[: timeline.text_offset_at(seconds)] for seconds in (0, 0.4, 0.6, 1.2, 2.9, 3.0, 3.6, 9)]

    assert heard == ["", "", "aaa", "aaa", "aaa bbb ccc.", "aaa bbb ccc. ", "aaa bbb ccc. ddd", "aaa bbb ccc. ddd"]


@given(st.lists(st.tuples(st.text("ab ,.", max_size=20), st.integers(0, 3000)), max_size=8))
def test_more_time_never_means_less_text(parts: list[tuple[str, int]]):
    timeline, at = Timeline(1000), 0
    for text, samples in parts:
        timeline.append(segment(text, at), Speech(np.full(samples, 9000, np.int16)))
        at += len(text)

    offsets = [timeline.text_offset_at(tenth / 10) for tenth in range(300)]

    assert offsets == sorted(offsets)
    assert offsets[-1] == at
