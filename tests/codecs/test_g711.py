import subprocess

import numpy as np
import pytest

from voxgate.codecs import g711

LAWS = ("mulaw", "alaw")
EVERY = np.arange(-32768, 32768).astype(np.int16)
CODES = bytes(range(256))


def converted(data: bytes, source: str, target: str) -> bytes:
    """What ffmpeg makes of it."""
    command = ["ffmpeg", "-v", "error", "-f", source, "-ar", "8000", "-i", "-", "-f", target, "-"]
    return subprocess.run(command, input=data, check=True, capture_output=True).stdout


@pytest.mark.parametrize("law", LAWS)
def test_every_code_is_the_sample_it_is_for_ffmpeg(law):
    assert g711.decode(CODES, law).astype("<i2").tobytes() == converted(CODES, law, "s16le")


@pytest.mark.parametrize("law", LAWS)
def test_every_code_comes_back_from_the_sample_it_stands_for(law):
    codes = g711.encode(g711.decode(CODES, law), law)
    twins = {"mulaw": {0x7F: 0xFF}, "alaw": {}}[law]  # mu-law has a second zero
    assert codes == bytes(twins.get(code, code) for code in CODES)


@pytest.mark.parametrize("law", LAWS)
def test_every_sample_becomes_the_nearest_of_the_codes_but_for_ties_and_one_step(law):
    values = np.sort(g711.decode(CODES, law).astype(int))
    nearest = np.min(np.abs(EVERY.astype(int)[:, None] - values), axis=1)
    error = np.abs(g711.decode(g711.encode(EVERY, law), law).astype(int) - EVERY)
    beyond = error - nearest
    assert np.mean(beyond > 0) < 0.02  # where segments meet the standard's thresholds are not the middle
    assert np.max(beyond) <= 256


@pytest.mark.parametrize("law", LAWS)
def test_nearly_every_sample_gets_the_code_that_ffmpeg_gives_it(law):
    """ffmpeg takes the nearest code; the standard has its own thresholds between segments."""
    theirs = converted(EVERY.astype("<i2").tobytes(), "s16le", law)
    ours = g711.encode(EVERY, law)
    assert np.mean(np.frombuffer(theirs, np.uint8) != np.frombuffer(ours, np.uint8)) < 0.016


# ITU-T G.711, tables 1 and 2: a value in each segment, just below and at its threshold.
@pytest.mark.parametrize(
    ("law", "pcm", "code"),
    [
        *(("mulaw", 0, 0xFF), ("mulaw", 3, 0xFF), ("mulaw", 4, 0xFE), ("mulaw", -1, 0x7F), ("mulaw", -5, 0x7E)),
        *(("mulaw", 123, 0xF0), ("mulaw", 124, 0xEF), ("mulaw", 32767, 0x80), ("mulaw", -32768, 0x00)),
        *(("alaw", 0, 0xD5), ("alaw", -1, 0x55), ("alaw", 15, 0xD5), ("alaw", 16, 0xD4), ("alaw", -17, 0x54)),
        *(("alaw", 1023, 0xFA), ("alaw", 1024, 0xE5), ("alaw", 32767, 0xAA), ("alaw", -32768, 0x2A)),
    ],
)
def test_the_thresholds_are_those_of_the_standard(law, pcm, code):
    assert g711.encode(np.array([pcm], np.int16), law) == bytes([code])


@pytest.mark.parametrize("law", LAWS)
def test_nothing_is_nothing(law):
    assert g711.encode(EVERY[:0], law) == b""
    assert len(g711.decode(b"", law)) == 0
