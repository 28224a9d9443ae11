import itertools

import numpy as np
import pytest
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


# --- segments in parts -----------------------------------------------------------------------------------------------


def in_parts(timeline: Timeline, spoken: Segment, speech: Speech, cuts: list[int]) -> list[tuple[Word, ...]]:
    pcm = speech.pcm
    edges = [0, *sorted(min(cut, len(pcm)) for cut in cuts), len(pcm)]
    parts = [Speech(pcm[begin:end]) for begin, end in itertools.pairwise(edges)]
    return [timeline.extend(spoken, part, last=n == len(parts) - 1) for n, part in enumerate(parts)]


def test_a_segment_in_one_part_has_the_words_of_a_whole_one():
    whole, parts = Timeline(RATE), Timeline(RATE)
    words = whole.append(segment("Hello, you"), sound(0.5, 1.1, 0.3))

    assert in_parts(parts, segment("Hello, you"), sound(0.5, 1.1, 0.3), []) == [words]
    assert (parts.seconds, parts.text_end) == (whole.seconds, whole.text_end)


def test_words_are_told_with_the_part_in_which_they_end():
    told = in_parts(Timeline(RATE), segment("One two three four"), sound(0, 1.178), [RATE // 2])

    assert [[word.text for word in words] for words in told] == [["One", "two"], ["three", "four"]]
    assert [word.end for words in told for word in words] == [0.248, 0.496, 0.868, 1.178]


def test_the_pace_of_what_was_heard_whole_is_what_later_words_are_told_by():
    timeline = Timeline(RATE)
    in_parts(timeline, segment("Slowly spoken words"), sound(0, 4.0), [RATE])
    first, *_ = in_parts(timeline, segment("Slowly spoken words", 20), sound(0, 4.0), [RATE * 3 // 2])

    assert [word.text for word in first] == ["Slowly"]
    assert first[0].end - first[0].start == pytest.approx(1.4, abs=0.01)


def test_who_has_heard_a_part_has_heard_its_words():
    timeline = Timeline(RATE)
    timeline.extend(segment("One two three four"), sound(0, 0.5), last=False)

    assert timeline.text_offset_at(0.5) == len("One two")
    assert timeline.text_offset_at(0.3) == len("One")
    assert timeline.text_end == len("One two")


@given(
    text=st.lists(st.sampled_from(["a", "word", "antidisestablishmentarianism", "12"]), min_size=1, max_size=12),
    voiced_s=st.floats(0.01, 4.0),
    cuts=st.lists(st.integers(0, 5 * RATE), max_size=8),
)
def test_however_it_is_cut_every_word_is_told_once_in_order_and_within_the_sound_that_is_there(
    text: list[str], voiced_s: float, cuts: list[int]
):
    timeline, spoken, pcm = Timeline(RATE), segment(" ".join(text)), sound(0.1, voiced_s, 0.2)
    ends: list[float] = []
    told: list[Word] = []
    for words in in_parts(timeline, spoken, pcm, cuts):
        told += words
    ends = [word.end for word in told]

    assert [word.text for word in told] == text
    assert all(word.start <= word.end + 1e-9 for word in told)
    assert ends == sorted(ends)
    assert ends[-1] <= timeline.seconds + 0.001
    assert timeline.text_end == spoken.end
    assert timeline.samples == len(pcm.pcm)
