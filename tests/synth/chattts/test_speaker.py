import numpy as np
import pytest

from voxgate.synth.chattts.base16384 import encode
from voxgate.synth.chattts.errors import SpeakerError
from voxgate.synth.chattts.speaker import from_string, random_speaker, read_statistics, to_string

VECTOR = np.linspace(-2, 2, 32).astype(np.float16)


def test_a_speaker_survives_being_a_string():
    assert np.array_equal(from_string(f"  {to_string(VECTOR)}\n", 32), VECTOR.astype(np.float32))


@pytest.mark.parametrize("text", ["", "蘁淰敥欀", "hello", encode(b"no lzma inside")])
def test_a_string_that_is_no_speaker_is_refused(text):
    with pytest.raises(SpeakerError):
        from_string(text, 32)


def test_a_speaker_of_another_width_is_refused():
    with pytest.raises(SpeakerError, match="64 bytes, not 1536"):
        from_string(to_string(VECTOR), 768)


def test_a_speaker_with_numbers_that_are_none_is_refused():
    with pytest.raises(SpeakerError, match="numbers that are none"):
        from_string(to_string(np.full(32, np.nan)), 32)


def test_a_string_that_unpacks_to_gigabytes_is_refused():
    with pytest.raises(SpeakerError):
        from_string(to_string(np.zeros(10_000_000)), 32)


def test_random_voices_are_drawn_from_the_statistics_by_their_seed():
    deviation, mean = read_statistics(encode(np.concatenate([VECTOR * 0, VECTOR]).tobytes()), 32)
    assert np.array_equal(random_speaker(7, deviation, mean), mean)

    wide = np.ones(32, np.float32)
    assert np.array_equal(random_speaker(7, wide, mean), random_speaker(7, wide, mean))
    assert not np.array_equal(random_speaker(7, wide, mean), random_speaker(8, wide, mean))


def test_a_statistics_file_of_another_size_is_refused():
    with pytest.raises(SpeakerError, match="statistics file holds 64 bytes, not 128"):
        read_statistics(encode(VECTOR.tobytes()), 32)
