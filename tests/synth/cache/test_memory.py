from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.cache.memory import ENTRY_BYTES, Memory
from voxgate.synth.speech import Speech

MOST = 10 * ENTRY_BYTES


def speech(samples: int, value: int = 1):
    return Speech(np.full(samples, value, np.int16))


def test_what_was_put_is_got_and_cannot_be_changed():
    memory = Memory(MOST)
    memory.put(b"a", speech(3))

    kept = memory.get(b"a")

    assert kept is not None
    assert kept.pcm.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        kept.pcm[0] = 2


def test_speech_without_samples_is_kept_too():
    memory = Memory(MOST)
    memory.put(b"a", speech(0))

    kept = memory.get(b"a")

    assert kept is not None
    assert len(kept.pcm) == 0


def test_times_are_kept_and_counted_with_their_speech():
    memory = Memory(ENTRY_BYTES + 6 + 8)
    memory.put(b"a", Speech(np.zeros(3, np.int16), b"12345678"))

    kept = memory.get(b"a")

    assert kept is not None
    assert kept.times == b"12345678"
    assert memory.bytes == ENTRY_BYTES + 6 + 8


def test_the_least_recently_used_goes_first():
    memory = Memory(3 * (ENTRY_BYTES + 20))
    for key in (b"a", b"b", b"c"):
        memory.put(key, speech(10))
    memory.get(b"a")
    memory.put(b"d", speech(10))

    assert [key for key in (b"a", b"b", b"c", b"d") if memory.get(key) is not None] == [b"a", b"c", b"d"]


def test_what_is_larger_than_all_evicts_nothing():
    memory = Memory(MOST)
    memory.put(b"a", speech(10))
    memory.put(b"b", speech(MOST))

    assert memory.get(b"a") is not None
    assert memory.get(b"b") is None


keys = st.sampled_from([bytes([n]) for n in range(8)])


@given(st.lists(st.tuples(keys, st.none() | st.integers(0, MOST))))
def test_it_behaves_like_a_list_in_order_of_use(steps: list[tuple[bytes, int | None]]):
    memory, model = Memory(MOST), OrderedDict[bytes, int]()
    for key, samples in steps:
        if samples is None:
            found = memory.get(key)
            assert (None if found is None else len(found.pcm)) == model.get(key)
            if key in model:
                model.move_to_end(key)
            continue
        memory.put(key, speech(samples))
        model.pop(key, None)
        if ENTRY_BYTES + 2 * samples <= MOST:
            model[key] = samples
        while sum(ENTRY_BYTES + 2 * each for each in model.values()) > MOST:
            model.popitem(last=False)
        assert len(memory) == len(model)
        assert memory.bytes == sum(ENTRY_BYTES + 2 * each for each in model.values()) <= MOST
