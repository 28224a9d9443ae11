import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.client import Audio, Cancelled, Done, Started, Word, Words
from voxgate.loadtest.listening import Listening, Outcome

RATE = 1000  # samples are milliseconds


def started(codec: str = "pcm_s16le", **other) -> Started:
    return Started("c1", 1, "heart", "realtime", codec, RATE, 1, other.get("frame", 20), other.get("pre_skip", 0))


def audio(sequence: int, start: int, samples: int, at: float) -> Audio:
    return Audio(1, sequence, start, b"\0\0" * samples, sequence == 0, at)


class Told:
    """A listening to a text of two sentences of 50 characters, in the language of the tests."""

    def __init__(self, *, slow: bool = False) -> None:
        self.listening = Listening(101, (50, 101), 10.0, slow=slow)
        self.sequence = 0
        self.start = 0

    def wrote(self, *lengths_at: tuple[int, float]) -> "Told":
        for length, at in lengths_at:
            self.listening.wrote(length, at)
        return self

    def heard(self, seconds: float, at: float) -> "Told":
        if self.listening.started is None:
            self.listening.receive(started(), at)
        samples = round(seconds * RATE)
        self.listening.receive(audio(self.sequence, self.start, samples, at), at)
        self.sequence += 1
        self.start += samples
        return self

    def words(self, *begins_offsets: tuple[float, int]) -> "Told":
        words = tuple(Word("w", begin, begin, offset) for begin, offset in begins_offsets)
        self.listening.receive(Words("c1", words), 0.0)
        return self

    def done(self, at: float):
        self.listening.receive(Done("c1", self.start), at)
        return self.listening.finished(at)


def whole() -> Told:
    return Told().wrote((101, 10.0))


def test_a_text_sent_whole_is_timed_from_there():
    result = whole().heard(1.0, 10.05).heard(2.0, 10.9).done(11.0)

    assert result.outcome is Outcome.DONE
    assert result.ttfa == pytest.approx(0.05)
    assert result.audio_seconds == 3.0
    assert result.ended_at == pytest.approx(13.05)  # heard out, long after the last message
    assert (result.underruns, result.underrun_seconds, result.waits) == (0, 0, 0)


def test_late_audio_of_a_text_sent_whole_is_an_underrun():
    result = whole().heard(1.0, 10.05).heard(1.0, 11.25).heard(1.0, 12.0).done(12.1)

    assert result.underruns == 1
    assert result.underrun_seconds == pytest.approx(0.2)
    assert result.largest_gap == pytest.approx(0.2)
    assert result.ended_at == pytest.approx(13.25)


def test_text_by_tokens_is_timed_from_the_end_of_its_first_piece_and_the_character_behind():
    told = Told().wrote((40, 10.0), (50, 10.5), (54, 10.6), (101, 12.0))

    assert told.heard(1.0, 10.65).done(11.0).ttfa == pytest.approx(0.05)


def test_audio_from_before_the_first_piece_was_written_was_at_once():
    assert Told().wrote((40, 10.0)).heard(1.0, 10.4).wrote((101, 12.0)).done(13.0).ttfa == 0.0


def test_waiting_for_text_is_no_underrun():
    told = Told().wrote((55, 10.0)).heard(1.0, 10.1).wrote((101, 12.0))
    result = told.words((0.0, 0), (1.01, 51)).heard(1.0, 12.04).done(12.1)

    assert result.underruns == 1
    assert result.underrun_seconds == pytest.approx(0.04)  # from 12.0, when the second sentence was there
    assert result.waits == pytest.approx(11.9 - 11.0)


def test_what_had_been_written_is_owed_while_more_is_being_written():
    told = Told().wrote((55, 10.0)).heard(1.0, 10.1).words((0.0, 0), (1.5, 20)).heard(1.0, 11.4).wrote((101, 30.0))

    assert told.done(31.0).underrun_seconds == pytest.approx(0.3)  # the word at 20 is in the first sentence


def test_without_word_times_the_whole_text_must_have_been_written():
    told = Told().wrote((55, 10.0)).heard(1.0, 10.1).heard(1.0, 11.4).wrote((101, 30.0))

    result = told.done(31.0)
    assert (result.underruns, result.waits) == (0, pytest.approx(0.3))


def test_a_slow_reader_has_no_underruns():
    told = Told(slow=True).wrote((101, 10.0)).heard(1.0, 10.1).heard(1.0, 15.0)

    assert (told.done(15.0).underruns, told.done(15.0).slow) == (0, True)


def test_an_interruption_knows_what_was_heard_and_how_long_sound_went_on():
    told = whole().heard(2.0, 10.0)
    assert told.listening.cancel(10.5) == 500
    told.heard(1.0, 10.52)
    told.listening.receive(Cancelled("c1", 3000, 500), 10.53)
    result = told.listening.finished(10.53)

    assert result.outcome is Outcome.CANCELLED
    assert result.cancel_to_silence == pytest.approx(0.02)
    assert result.cancel_to_confirmed == pytest.approx(0.03)
    assert result.ended_at == 10.53


def test_an_interruption_after_the_last_audio_was_silence_at_once():
    told = whole().heard(2.0, 10.0)
    told.listening.receive(Done("c1", 2000), 10.1)
    told.listening.cancel(11.0)
    told.listening.receive(Cancelled("c1", 2000, 1000), 11.01)

    assert told.listening.finished(11.01).cancel_to_silence == 0.0


def test_done_without_audio_is_a_failure():
    result = whole().done(10.1)

    assert (result.outcome, result.reason, result.ttfa) == (Outcome.FAILED, "silent", None)


@pytest.mark.parametrize(
    ("code", "outcome"), [("overloaded", Outcome.REFUSED), ("internal", Outcome.FAILED), ("idle", Outcome.FAILED)]
)
def test_what_a_full_server_says_is_a_refusal_and_all_else_a_failure(code, outcome):
    result = whole().listening.ended_with(code, 10.2)

    assert (result.outcome, result.reason) == (outcome, code)
    assert result.ended_at - result.began_at == pytest.approx(0.2)


def test_opus_is_counted_by_its_packets():
    listening = Listening(5, (5,), 0.0)
    listening.receive(started("opus", frame=20, pre_skip=6), 0.0)
    packets = b"\0\3abc" * 10
    listening.receive(Audio(1, 0, 0, packets, True, 0.1), 0.1)
    listening.receive(Audio(1, 1, 194, packets, False, 0.2), 0.2)

    assert listening.samples == 394


@pytest.mark.parametrize(("codec", "samples"), [("pcm_s16le", 150), ("mulaw", 200), ("wav", 150)])
def test_other_codecs_are_counted_by_their_bytes(codec, samples):
    listening = Listening(5, (5,), 0.0)
    listening.receive(started(codec), 0.0)
    listening.receive(Audio(1, 0, 100, b"\0" * 100, True, 0.1), 0.1)

    assert listening.samples == samples


@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.floats(0.0, 2.0)), min_size=1, max_size=30), st.booleans())
def test_what_is_owed_and_what_is_waited_for_is_all_that_was_missing(messages, slow):
    told = Told(slow=slow).wrote((101, 10.0))
    at = 10.0
    for seconds, wait in messages:
        at += wait
        told.heard(seconds, at)
    result = told.done(at)
    clock = told.listening.clock
    assert clock is not None

    assert result.underrun_seconds == pytest.approx(0.0 if slow else clock.underrun_seconds)
    assert result.waits == pytest.approx(0.0)
    assert result.ended_at >= at
