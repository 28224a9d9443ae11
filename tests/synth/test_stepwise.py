import math
import socket
import threading
from collections import defaultdict

import numpy as np
import pytest

from fakes.stepping import RATE, SAMPLES, SteppingEngine, sound
from voxgate.synth.engine import Setup
from voxgate.synth.messages import (
    MAX_REPLY_BYTES,
    PREFIX,
    Cancel,
    Cover,
    Failed,
    Figures,
    Hold,
    Narrow,
    Ready,
    Spoken,
    Synthesize,
    decode_reply,
    encode,
    payload_length,
)
from voxgate.synth.segment import Boundary, Segment, Style
from voxgate.synth.stepwise import serve

ANYBODY = Style("tone")
LONG = " ".join(["again"] * 100)  # 24 s, well over any lead


class Gateway:
    """The other end of the socket of a loop that runs in a thread."""

    def __init__(self, **options):
        self.engine = SteppingEngine(Setup("stepping", slots=4, options={"step_s": 0.001, **options}))
        self.socket, end = socket.socketpair()
        self.socket.settimeout(30)
        self.sounds = defaultdict(list)
        self.over = {}  # job -> True, or why it failed
        self.figures = []
        self.result = []

        def run():
            with end:
                self.result.append(serve(end, self.engine, self.engine.info))

        self.thread = threading.Thread(target=run)
        self.thread.start()
        assert self.reply() == Ready(self.engine.info)

    def say(self, *requests):
        self.socket.sendall(b"".join(map(encode, requests)))

    def speak(self, job, text, style=ANYBODY, covered_until=-math.inf):
        self.say(Synthesize(job, segment(text), style, covered_until))

    def reply(self):
        return decode_reply(self.read(payload_length(self.read(PREFIX.size), MAX_REPLY_BYTES)))

    def read(self, length):
        data = b""
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            assert part, "the worker has closed its end"
            data += part
        return data

    def listen(self):
        """Takes one reply, and keeps what it says."""
        match self.reply():
            case Spoken(job, pcm, _compute_s, last):
                assert job not in self.over
                self.sounds[job].append(np.frombuffer(pcm, np.int16))
                if last:
                    self.over[job] = True
            case Failed(job, message):
                assert job not in self.over
                self.over[job] = message
            case Figures() as figures:
                self.figures.append(figures)

    def until(self, condition):
        while not condition():
            self.listen()

    def heard(self, job):
        return np.concatenate(self.sounds[job])

    def close(self):
        self.socket.close()
        self.thread.join(30)
        return self.result[0]


@pytest.fixture
def gateway():
    gateway = Gateway(pool_bytes=4000)
    yield gateway
    gateway.close()


def segment(text):
    return Segment(0, text, 0, len(text), Boundary.START, Boundary.END)


def test_a_segment_comes_in_chunks_that_are_its_whole_sound(gateway):
    gateway.speak(1, "one two three four")
    gateway.until(lambda: 1 in gateway.over)

    assert len(gateway.sounds[1]) > 2
    assert len(gateway.sounds[1][0]) < 4 * SAMPLES
    assert np.array_equal(gateway.heard(1), sound(segment("one two three four"), ANYBODY))


def test_neighbours_change_nothing_of_a_sound_and_are_computed_together(gateway):
    texts = {job: f"number {job} and {'some ' * job} words" for job in range(1, 10)}
    for job, text in texts.items():
        gateway.speak(job, text)
    gateway.until(lambda: len(gateway.over) == 9)

    assert all(np.array_equal(gateway.heard(job), sound(segment(text), ANYBODY)) for job, text in texts.items())
    assert max(map(len, gateway.engine.batches)) == 4
    assert gateway.engine.rows.keys() <= {0, 1, 2, 3}


def test_a_cancelled_segment_says_no_more_and_its_slot_is_anothers(gateway):
    for job in range(1, 5):
        gateway.speak(job, LONG)
    gateway.until(lambda: all(gateway.sounds[job] for job in range(1, 5)))

    gateway.say(*(Cancel(job) for job in range(1, 5)))
    gateway.speak(9, "after them")
    gateway.until(lambda: 9 in gateway.over)

    assert np.array_equal(gateway.heard(9), sound(segment("after them"), ANYBODY))
    assert gateway.over == {9: True}
    assert len(gateway.engine.batches) < 500


def test_what_cannot_be_spoken_fails_alone(gateway):
    gateway.speak(1, "this one is fine")
    gateway.speak(2, "refused")
    gateway.speak(3, "unsayable")
    gateway.speak(4, "broken")
    gateway.speak(5, "hello", Style("nobody"))
    gateway.until(lambda: len(gateway.over) == 5)

    assert gateway.over == {
        1: True,
        2: "not a word I know",
        3: "it came out empty",
        4: "RuntimeError: out of luck",
        5: "unknown voice 'nobody'",
    }


def test_a_listener_who_is_served_is_left_out_until_it_needs_more(gateway):
    gateway.speak(1, LONG, covered_until=1e12)
    gateway.speak(2, "somebody else")
    gateway.until(lambda: 2 in gateway.over)
    assert gateway.sounds[1] == []

    gateway.say(Cover(1, 0.0))
    gateway.until(lambda: gateway.sounds[1])


def test_a_held_segment_waits_for_its_release(gateway):
    gateway.say(Synthesize(1, segment("not now"), ANYBODY), Hold(1, True))
    gateway.speak(2, "somebody else")
    gateway.until(lambda: 2 in gateway.over)
    assert 1 not in gateway.over

    gateway.say(Hold(1, False))
    gateway.until(lambda: 1 in gateway.over)


def test_a_narrow_batch_is_one_at_a_time(gateway):
    gateway.say(Narrow(1), *(Synthesize(job, segment("one two"), ANYBODY) for job in range(1, 5)))
    gateway.until(lambda: len(gateway.over) == 4)

    assert max(map(len, gateway.engine.batches)) == 1


def test_what_the_slots_use_is_told_when_it_changes_and_signs_of_life_come_while_anybody_waits(gateway):
    gateway.say(Synthesize(1, segment(LONG), ANYBODY), Hold(1, True))
    gateway.until(lambda: len(gateway.figures) >= 3)
    assert gateway.figures == [Figures(0, 3000)] * 3

    gateway.say(Cancel(1))
    gateway.until(lambda: gateway.figures[-1] == Figures(0, 4000))


@pytest.mark.parametrize(
    ("sounds", "says"),
    [([], "0 sounds for 1"), ([np.zeros(480)], "float64"), ([np.zeros((1, 480), np.int16)], "shape")],
    ids=["too few", "floats", "not mono"],
)
def test_an_engine_that_gives_no_sound_for_a_window_has_broken(gateway, caplog, sounds, says):
    gateway.engine.decode = lambda _windows: sounds
    gateway.speak(1, "Hello.")

    gateway.thread.join(30)
    assert gateway.result == [1]
    assert says in caplog.text


def test_the_end_of_the_socket_ends_the_loop(gateway):
    gateway.speak(1, LONG)

    assert gateway.close() == 0


@pytest.mark.parametrize(
    "message", [PREFIX.pack(2**31), PREFIX.pack(3) + b"\xc1\xc1\xc1"], ids=["too large", "malformed"]
)
def test_a_message_out_of_protocol_ends_the_loop(gateway, message):
    gateway.socket.sendall(message)

    gateway.thread.join(30)
    assert gateway.result == [1]


def test_messages_that_come_in_pieces_are_put_together(gateway):
    data = encode(Synthesize(1, segment("in pieces"), ANYBODY)) + encode(Synthesize(2, segment("as well"), ANYBODY))
    for at in range(0, len(data), 7):
        gateway.socket.sendall(data[at : at + 7])
    gateway.until(lambda: len(gateway.over) == 2)

    assert len(gateway.heard(1)) > RATE // 4
