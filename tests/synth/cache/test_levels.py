import numpy as np

from voxgate.synth.cache.levels import Levels
from voxgate.synth.speech import Speech


class ScriptedStore:
    """Answers when it is told to."""

    def __init__(self, asked: str = "asked") -> None:
        self.asked = asked
        self.questions = []
        self.written = {}

    def fetch(self, key, answer) -> str:
        if self.asked == "asked":
            self.questions.append(answer)
        return self.asked

    def put(self, key, speech) -> str:
        self.written[key] = speech
        return "sent"

    async def close(self) -> None:
        self.asked = "closed"


def never(speech: object) -> None:
    raise AssertionError("an answer nobody asked for")


def speech(*samples: int):
    return Speech(np.array(samples, np.int16))


def test_nothing_is_kept_where_nothing_is_configured():
    levels = Levels()
    levels.put(b"a", speech(1))

    assert levels.get(b"a") is None
    assert levels.get_late(b"a") is None
    assert not levels.fetch(b"a", never)
    assert levels.requests == {}


def test_what_was_spoken_is_found_in_memory():
    levels = Levels(10_000)
    assert levels.get(b"a") is None
    levels.put(b"a", speech(1, 2))

    found = levels.get(b"a")

    assert found is not None
    assert found.pcm.tolist() == [1, 2]
    assert levels.requests == {("memory", "miss"): 1, ("memory", "hit"): 1}


def test_what_came_after_the_look_up_is_counted_by_itself():
    levels = Levels(10_000)
    levels.get(b"a")
    assert levels.get_late(b"a") is None
    levels.put(b"a", speech(1))

    assert levels.get_late(b"a") is not None
    assert levels.requests == {("memory", "miss"): 1, ("memory", "late_hit"): 1}


def test_pinned_speech_outlives_memory():
    levels = Levels(2000)
    levels.pin([b"a", b"b"])
    levels.put(b"a", speech(1))
    for number in range(100):
        levels.put(bytes([number]) * 2, speech(*range(100)))

    found = levels.get(b"a")

    assert found is not None
    assert not found.pcm.flags.writeable
    assert levels.unspoken == [b"b"]
    assert levels.pinned_bytes == 2
    assert levels.memory_bytes <= 2000


def test_what_is_found_in_the_store_is_kept_in_memory():
    store = ScriptedStore()
    levels = Levels(10_000, store)
    answers = []
    assert levels.fetch(b"a", answers.append)
    assert answers == []
    [answer] = store.questions
    answer("hit", speech(1))

    assert [each.pcm.tolist() for each in answers] == [[1]]
    assert levels.get(b"a") is answers[0]
    assert store.written == {}


def test_what_is_not_found_in_the_store_is_told_and_counted():
    store = ScriptedStore()
    levels = Levels(10_000, store)
    answers = []
    for result in ("miss", "timeout", "damaged"):
        levels.fetch(b"a", answers.append)
        store.questions.pop()(result, None)

    assert answers == [None, None, None]
    assert levels.requests == {("redis", "miss"): 1, ("redis", "timeout"): 1, ("redis", "damaged"): 1}


def test_a_store_that_is_not_asked_answers_nothing():
    levels = Levels(10_000, ScriptedStore("open"))

    assert not levels.fetch(b"a", never)
    assert levels.requests == {("redis", "open"): 1}


async def test_everything_spoken_goes_to_the_store_and_it_is_closed_with_the_rest():
    store = ScriptedStore()
    levels = Levels(10_000, store)
    levels.put(b"a", speech(1))
    await levels.close()

    assert [*store.written] == [b"a"]
    assert levels.writes == {"sent": 1}
    assert store.asked == "closed"
