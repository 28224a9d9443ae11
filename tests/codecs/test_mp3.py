import subprocess

import numpy as np
import pytest

from voxgate.codecs.mp3 import DELAY, Mp3Encoder, frame_samples

RATES = (8000, 16000, 22050, 24000, 44100, 48000)


def speechlike(seconds, rate):
    """Sixty partials below 3 kHz in syllables: a sound an alignment can be read from."""
    time = np.arange(round(seconds * rate)) / rate
    chance = np.random.default_rng(1)
    hertz, phase = chance.uniform(100, 3000, (60, 1)), chance.uniform(0, 2 * np.pi, (60, 1))
    sound = np.sum(np.cos(2 * np.pi * hertz * time + phase), axis=0) * np.sin(4 * np.pi * time) ** 2
    return np.rint(sound * 800).astype(np.int16)


def encoded(pcm, rate, push=480):
    """The frames that came while it was pushed, and those that came in the end."""
    encoder = Mp3Encoder(rate)
    frames = [frame for at in range(0, len(pcm), push) for frame in encoder.encode(pcm[at : at + push])]
    return frames, encoder.drain()


def every(early, late):
    return early + late


def players():
    """Commands that turn MP3 on stdin into bare samples."""
    return {
        "mpg123": ["mpg123", "-q", "-s", "-"],
        "ffmpeg": ["ffmpeg", "-v", "error", "-f", "mp3", "-i", "-", "-f", "s16le", "-"],
    }


@pytest.mark.parametrize("player", players())
@pytest.mark.parametrize("rate", RATES)
def test_every_decoder_is_late_by_the_delay_and_gives_whole_frames(rate, player):
    pcm = speechlike(1.0, rate)
    early, late = encoded(pcm, rate)
    read = subprocess.run(players()[player], input=b"".join(early + late), check=True, capture_output=True)
    heard = np.frombuffer(read.stdout, "<i2")
    assert len(heard) == len(early + late) * frame_samples(rate)
    part = heard[DELAY : DELAY + len(pcm)].astype(float)
    assert np.corrcoef(part, pcm)[0, 1] > 0.99
    for shift in (-1, 1):
        assert np.corrcoef(np.roll(part, shift), pcm)[0, 1] < np.corrcoef(part, pcm)[0, 1]


@pytest.mark.parametrize("rate", RATES)
def test_frames_come_while_speech_goes_on_and_all_of_it_in_the_end(rate):
    early, late = encoded(speechlike(1.0, rate), rate)
    assert len(early) * frame_samples(rate) >= rate - 4 * frame_samples(rate)
    assert len(early + late) * frame_samples(rate) >= rate + DELAY


def test_the_bitrate_is_constant_and_that_of_the_sample_rate():
    def kbits(rate):
        frames = every(*encoded(speechlike(2.0, rate), rate))
        return round(sum(map(len, frames)) * 8 * rate / (len(frames) * frame_samples(rate)) / 1000, 1)

    assert {rate: kbits(rate) for rate in RATES} == pytest.approx(
        {8000: 32, 16000: 48, 22050: 64, 24000: 64, 44100: 96, 48000: 96}, rel=0.01
    )


@pytest.mark.parametrize("push", [1, 7, 576, 24000])
def test_any_cutting_gives_the_same_frames(push):
    pcm = speechlike(0.3, 24000)
    assert every(*encoded(pcm, 24000, push)) == every(*encoded(pcm, 24000))


def test_each_frame_begins_with_its_header():
    frames = every(*encoded(speechlike(0.5, 24000), 24000))
    assert {frame[:2] for frame in frames} == {b"\xff\xf3"}  # MPEG 2, layer III, no checksum


def test_an_encoder_that_got_nothing_still_ends():
    assert [len(frame) for frame in Mp3Encoder(24000).drain()] == [192, 192]
