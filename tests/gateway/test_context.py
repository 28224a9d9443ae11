"""One context without a session around it: what it asks of the stage, and when it wants waking."""

import json

import numpy as np
import pytest

from scripted_stage import HEART, ScriptedStage, ScriptedTrack, spoken
from voxgate.admission.answer import Outcome
from voxgate.codecs.packetizer import choose_format
from voxgate.gateway.context import HIGH_MARK_S, IDLE_FLUSH_S, NEVER, Context, Settings
from voxgate.gateway.dialect import Item
from voxgate.gateway.native import NATIVE
from voxgate.gateway.stage import Part
from voxgate.synth.segment import Segment, Style
from voxgate.synth.speech import Speech


class Scene:
    """A context, its stage, and both halves of the work between them."""

    def __init__(self, lead_s: float = 2.0, sample_rate: int = 24000, timestamps: bool = False) -> None:
        self.stage = ScriptedStage()
        form = choose_format("pcm_s16le", sample_rate, 20, 24000)
        settings = Settings(HEART, Style("heart"), form, lead_s, timestamps=timestamps)
        self.context = Context("c1", 1, settings, self.stage, NATIVE, now=0.0)

    def speak(self, now: float) -> None:
        """Speaks every segment that waits, but encodes nothing."""
        while self.stage.segments:
            _, segment = self.stage.segments.popleft()
            self.context.audio(segment, spoken(segment), now)

    def encode_one(self, now: float) -> None:
        (track,) = self.stage.tracks.values()
        job = track.jobs.popleft()
        if job is None:
            self.context.encoded(track.packetizer.finish(), track.packetizer.samples, now)
        else:
            self.context.encoded(track.packetizer.push(job), None, now)

    def encode(self, now: float) -> None:
        """Encodes and sends the first bite, then encodes all the rest."""
        (track,) = self.stage.tracks.values()
        for _ in range(3):
            while track.jobs:
                self.encode_one(now)
            if track.packetizer.samples <= 1440:
                self.poll(now)

    def poll(self, now: float) -> list[str]:
        out: list[Item] = []
        self.context.poll(now, out)
        return ["audio" if isinstance(message, bytes) else json.loads(str(message))["type"] for message in out]

    @property
    def track(self) -> ScriptedTrack:
        (track,) = self.stage.tracks.values()
        return track

    @property
    def utterance(self) -> int:
        (utterance,) = self.stage.open_utterances
        return utterance


def test_the_first_sound_is_encoded_in_a_bite_of_its_own_and_the_rest_when_that_has_gone_out():
    scene = Scene()
    scene.context.feed("One two three four. ", 0.0)
    scene.speak(0.0)
    (track,) = scene.stage.tracks.values()
    assert [len(job) for job in track.jobs if job is not None] == [1440]

    scene.encode_one(0.0)
    assert not track.jobs
    assert scene.poll(0.0) == ["started", "audio"]

    assert scene.poll(0.0) == []
    assert [len(job) for job in track.jobs if job is not None] == [4 * 5760 - 1440]


def test_a_first_bite_that_the_resampler_holds_back_is_followed_at_once_by_the_rest():
    scene = Scene(sample_rate=8000)
    scene.context.feed("One two three four. ", 0.0)
    scene.speak(0.0)
    (track,) = scene.stage.tracks.values()

    scene.encode_one(0.0)

    assert [len(job) for job in track.jobs if job is not None] == [4 * 5760 - 1440]


def test_later_segments_are_encoded_whole():
    scene = Scene()
    scene.context.feed("One two three four. ", 0.0)
    scene.speak(0.0)
    scene.encode(0.0)
    scene.poll(0.0)
    scene.context.feed("Five six. ", 0.1)
    scene.speak(0.1)

    (track,) = scene.stage.tracks.values()
    assert [len(job) for job in track.jobs if job is not None] == [2 * 5760]


def test_synthesis_is_told_how_long_the_listener_is_served():
    scene = Scene()
    scene.context.feed("One two three four. ", 10.0)
    scene.speak(10.0)
    scene.encode(10.0)
    utterance = scene.utterance

    assert scene.stage.covered[utterance] == pytest.approx(10.0 + 0.96)


@pytest.mark.parametrize(("lead_s", "covered"), [(2.0, 4.8), (12.0, 2.0 + 2.8 / 6), (float("inf"), 2.0)])
def test_what_a_listener_has_beyond_the_usual_lead_counts_for_less_the_longer_a_lead_it_asked_for(lead_s, covered):
    scene = Scene(lead_s=lead_s)
    scene.context.feed("One " * 20, 10.0)
    scene.context.flush(10.0)
    scene.speak(10.0)
    scene.encode(10.0)

    assert scene.stage.covered[scene.utterance] == pytest.approx(10.0 + covered)


def test_generation_is_held_at_the_high_mark_and_released_when_it_is_taken():
    scene = Scene(lead_s=30.0)
    words = int(HIGH_MARK_S / 0.24) + 2
    scene.context.feed("word " * words, 0.0)
    scene.context.flush(0.0)
    scene.speak(0.0)
    scene.encode(0.0)
    assert scene.stage.held == {scene.utterance}

    while scene.poll(0.0):
        pass

    assert not scene.stage.held


def test_waking_is_asked_for_only_where_time_alone_brings_something():
    scene = Scene()
    assert scene.context.wake_at(0.0) == NEVER

    scene.context.feed("no terminator here", 5.0)
    assert scene.context.wake_at(5.0) == 5.0 + IDLE_FLUSH_S

    scene.context.flush(5.1)
    assert scene.context.wake_at(5.1) == 5.1
    assert scene.poll(5.1) == ["started"]
    assert scene.context.wake_at(5.1) == NEVER

    scene.speak(5.2)
    scene.encode_one(5.2)
    assert scene.context.wake_at(5.2) == 5.2


def test_a_full_listener_is_woken_for_when_there_is_room_again():
    scene = Scene(lead_s=1.0)
    scene.context.feed("one two three four five six seven eight nine. ", 0.0)
    scene.speak(0.0)
    scene.encode(0.0)
    while scene.poll(0.0):
        pass

    assert scene.context.wake_at(0.0) == pytest.approx(1 / 3)


def test_speech_owed_and_late_is_an_underrun_silence_of_the_writer_is_not():
    scene = Scene()
    scene.context.feed("One two. ", 0.0)
    scene.speak(0.0)
    scene.encode(0.0)
    scene.poll(0.0)

    scene.context.feed("Three four. ", 10.0)
    scene.speak(10.2)
    scene.encode(10.2)
    scene.poll(10.2)

    assert scene.context.pacer.underruns.count == 1
    assert scene.context.pacer.underruns.seconds == pytest.approx(0.2)


def test_a_first_wait_is_told_in_parts_that_add_up_to_it():
    scene = Scene()
    scene.stage.now = 0.125  # when admission says yes
    scene.context.feed("One two three four. ", 0.0)
    scene.speak(0.375)
    scene.encode_one(0.5)
    scene.poll(1.0)

    assert scene.stage.first_waits == [1.0]
    assert scene.stage.parts == [
        (Part.ADMISSION, 0.125),
        (Part.SYNTHESIS, 0.25),
        (Part.ENCODING, 0.125),
        (Part.SENDING, 0.5),
    ]


def test_what_of_a_first_wait_was_for_a_socket_that_took_nothing_is_told_apart():
    scene = Scene()
    scene.context.feed("One two three four. ", 0.0)
    scene.speak(0.25)
    scene.encode_one(0.5)
    scene.poll(9.5)

    assert (scene.stage.first_waits, scene.stage.held_up) == ([9.5], [9.0])


@pytest.mark.parametrize(("there_at", "dry"), [(0.5, []), (1.5, [3.04])])
def test_a_listener_runs_dry_by_what_was_not_there_and_not_by_what_it_did_not_take(there_at: float, dry: list[float]):
    scene = Scene()
    scene.context.feed("One two three four. Five six seven eight. ", 0.0)
    late = scene.stage.segments.pop()
    scene.speak(0.0)
    scene.encode(0.0)
    scene.poll(0.0)  # 0.96 s of audio
    scene.context.audio(late[1], spoken(late[1]), there_at)
    while scene.track.jobs:
        scene.encode_one(there_at)
    scene.poll(4.0)

    assert scene.stage.dry == pytest.approx(dry)


def test_who_still_listens_when_an_utterance_begins_waits_for_no_part_of_it():
    scene = Scene()
    scene.context.feed("One two three four. ", 0.0)
    scene.speak(0.0)
    scene.encode(0.0)
    scene.poll(0.0)
    scene.stage.parts.clear()
    scene.context.feed("Five six seven eight. ", 0.1)
    scene.speak(0.2)
    scene.encode(0.3)
    scene.poll(0.3)

    assert (len(scene.stage.first_waits), scene.stage.parts) == (1, [])


def test_closing_gives_everything_back():
    scene = Scene()
    scene.context.feed("One two three four. Five six seven. ", 0.0)

    scene.context.close(1.0, Outcome.CANCELLED)

    assert not scene.stage.open_utterances
    assert not scene.stage.segments
    assert scene.stage.controller.utterances == 0
    assert all(track.closed for track in scene.stage.tracks.values())


def test_what_was_heard_is_fixed_by_a_cancel_and_goes_on_after_the_last_packet_of_one_that_is_done():
    for outcome, heard in ((Outcome.CANCELLED, 0.5), (Outcome.SERVED, 0.96)):
        scene = Scene()
        scene.context.feed("One two three four. ", 0.0)
        scene.speak(0.0)
        scene.encode(0.0)
        scene.poll(0.0)
        record = scene.context.close(0.5, outcome)

        assert record.heard_at(9.0) == heard * 24000


# --- segments in chunks ----------------------------------------------------------------------------------------------


def chunks(scene: Scene, count: int) -> list[tuple[Segment, Speech, bool]]:
    """What waits, spoken in so many chunks each."""
    out: list[tuple[Segment, Speech, bool]] = []
    while scene.stage.segments:
        _, segment = scene.stage.segments.popleft()
        parts = np.array_split(spoken(segment).pcm, count)
        out += [(segment, Speech(part), n == count - 1) for n, part in enumerate(parts)]
    return out


def test_an_utterance_goes_on_until_the_last_chunk_of_its_last_segment_has_gone_out():
    scene = Scene()
    scene.context.feed("One two three four. ", 0.0)
    *first, (segment, pcm, last) = chunks(scene, 4)
    for each in first:
        scene.context.audio(each[0], each[1], 0.0, last=each[2])
        scene.encode(0.0)
        scene.poll(0.0)
    assert scene.stage.open_utterances
    assert scene.context.sent_samples == 3 * 5760

    scene.context.audio(segment, pcm, 0.1, last=last)
    scene.encode(0.1)
    scene.poll(0.1)

    assert scene.stage.open_utterances == {}
    assert scene.context.sent_samples == 4 * 5760


def test_a_flush_is_answered_behind_the_last_chunk_it_covers():
    scene = Scene()
    scene.context.feed("One two three four", 0.0)
    scene.context.flush(0.0)
    said: list[str] = []
    for segment, pcm, last in chunks(scene, 3):
        assert "flushed" not in said
        scene.context.audio(segment, pcm, 0.0, last=last)
        scene.encode(0.0)
        said += scene.poll(0.0)

    assert said[-1] == "flushed"


def test_a_segment_may_end_with_a_chunk_without_sound():
    scene = Scene()
    scene.context.feed("One two three four. ", 0.0)
    ((segment, pcm, _),) = chunks(scene, 1)
    scene.context.audio(segment, pcm, 0.0, last=False)
    scene.encode(0.0)
    scene.poll(0.0)
    assert scene.stage.open_utterances

    scene.context.audio(segment, Speech(pcm.pcm[:0]), 0.0, last=True)
    scene.encode(0.0)
    scene.poll(0.0)

    assert scene.stage.open_utterances == {}


def test_a_chunk_that_comes_too_late_is_a_gap_since_its_text_came():
    scene = Scene()
    scene.context.feed("One two three four. ", 0.0)
    (first, second) = chunks(scene, 2)
    scene.context.audio(first[0], first[1], 0.1, last=False)
    scene.encode(0.1)
    scene.poll(0.1)
    scene.context.audio(second[0], second[1], 1.0, last=True)
    scene.encode(1.0)
    scene.poll(1.0)

    assert scene.stage.first_waits == [pytest.approx(0.1)]
    assert scene.stage.dry == [pytest.approx(1.0 - 0.1 - 0.48)]


def test_a_listener_who_hangs_up_in_mid_segment_has_heard_the_words_it_was_sent():
    scene = Scene(timestamps=True)
    scene.context.feed("One two three four. ", 0.0)
    (first, _) = chunks(scene, 2)
    scene.context.audio(first[0], first[1], 0.0, last=False)
    scene.encode(0.0)
    scene.poll(0.0)
    record = scene.context.close(0.48, Outcome.CANCELLED)

    assert record.cancelled(0.48).text == "One"
