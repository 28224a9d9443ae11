import itertools

from voxgate.gateway.adapters import alignment
from voxgate.gateway.dialect import Spoken

WORDS = (("Hi,", 1.1, 1.4, 12), ("you.", 1.5, 1.9, 16))
SAID = Spoken("1", 1.0, 2.0, "  Hi, you. ", 10, WORDS, estimated=True)


def test_every_character_has_its_time_and_they_follow_each_other():
    told = alignment.milliseconds(SAID, absolute=True)

    assert "".join(told["chars"]) == "Hi, you. "
    assert told["charStartTimesMs"] == [1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900]
    assert told["charDurationsMs"] == [100, 100, 100, 100, 100, 100, 100, 100, 100]


def test_the_other_clock_begins_with_the_message_and_spans_all_of_its_audio():
    told = alignment.milliseconds(SAID, absolute=False)

    assert told["charStartTimesMs"][0] == 100
    assert told["charStartTimesMs"][-1] + told["charDurationsMs"][-1] == 1000


def test_spans_add_up_to_the_clock_of_the_context_however_the_seconds_fall():
    edges = [0.0, 0.3333, 0.66666, 1.00049, 1.2345]
    spans = [
        Spoken("1", begin, end, "a", 0, (("a", begin, end, 0),), estimated=True)
        for begin, end in itertools.pairwise(edges)
    ]
    told = [alignment.milliseconds(span, absolute=False) for span in spans]

    assert sum(each["charStartTimesMs"][-1] + each["charDurationsMs"][-1] for each in told) == round(1234.5)


def test_what_stands_behind_the_last_word_is_told_and_a_space_ends_it():
    told = alignment.milliseconds(
        Spoken("1", 0.0, 0.9, "Hi —", 0, (("Hi", 0.0, 0.2, 0),), estimated=True), absolute=True
    )

    assert "".join(told["chars"]) == "Hi — "
    assert told["charStartTimesMs"] == sorted(told["charStartTimesMs"])
    assert told["charStartTimesMs"][-1] + told["charDurationsMs"][-1] == 900


def test_audio_without_words_has_a_span_all_the_same():
    told = alignment.milliseconds(Spoken("1", 1.0, 1.5, "", 4, (), estimated=True), absolute=False)

    assert told == {"chars": [" "], "charStartTimesMs": [0], "charDurationsMs": [500]}


def test_over_http_the_times_are_seconds_from_the_beginning():
    told = alignment.seconds(SAID)

    assert told["character_start_times_seconds"][:2] == [1.1, 1.2]
    assert told["character_end_times_seconds"][-1] == 2.0
    assert len({len(values) for values in told.values()}) == 1
