import subprocess
import sys

import numpy as np
import pytest

from voxgate.codecs.mp3 import Mp3Encoder
from voxgate.codecs.sndfile import FLAC_FRAME_SAMPLES, FlacEncoder, read_mp3, write_flac

RATES = (8000, 16000, 22050, 24000, 44100, 48000)


def noise(samples):
    return np.random.default_rng(samples).integers(-20000, 20000, samples).astype(np.int16)


def encoded(pcm, rate, push=480):
    encoder = FlacEncoder(rate)
    frames = [frame for at in range(0, len(pcm), push) for frame in encoder.encode(pcm[at : at + push])]
    return frames + encoder.drain()


def flac(data: bytes):
    """What the reference decoder says and gives."""
    command = ["flac", "-d", "-s", "-c", "--force-raw-format", "--endian=little", "--sign=signed", "-"]
    read = subprocess.run(command, input=data, capture_output=True, check=True)
    return np.frombuffer(read.stdout, "<i2"), read.stderr.decode()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("samples", [1, 4095, 4096, 4097, 10000])
def test_the_reference_decoder_gives_back_every_bit(samples, rate):
    heard, said = flac(b"".join(encoded(noise(samples), rate)))
    assert np.array_equal(heard, noise(samples))
    assert said == "-: WARNING, cannot check MD5 signature since it was unset in the STREAMINFO\n"


@pytest.mark.parametrize("rate", RATES)
def test_the_header_tells_the_rate_and_that_the_length_is_unknown(rate):
    info = b"".join(encoded(noise(5000), rate))[8:42]
    packed = int.from_bytes(info[10:18])
    assert (packed >> 44, packed >> 41 & 7, packed >> 36 & 31, packed & (1 << 36) - 1) == (rate, 0, 15, 0)
    assert info[18:] == bytes(16)


def test_each_piece_is_a_frame_with_the_header_before_the_first():
    frames = encoded(noise(3 * FLAC_FRAME_SAMPLES + 1), 24000)
    assert [frame[:4] for frame in frames] == [b"fLaC", *[b"\xff\xf8\xc7\x08"] * 2, frames[3][:4]]
    assert len(frames) == 4


def test_a_stream_of_nothing_is_a_header():
    (header,) = encoded(noise(0), 24000)
    assert header.startswith(b"fLaC")
    assert subprocess.run(["flac", "-t", "-s", "-"], input=header, capture_output=True).returncode == 0


def test_a_file_has_its_length_and_a_checksum(tmp_path):
    path = tmp_path / "x.flac"
    file = write_flac(str(path), 22050)
    file.write(noise(5000))
    file.close()
    assert int.from_bytes(path.read_bytes()[21:26]) & (1 << 36) - 1 == 5000
    heard, said = flac(path.read_bytes())
    assert np.array_equal(heard, noise(5000))
    assert said == ""


def test_mp3_is_read_back_whole():
    encoder = Mp3Encoder(24000)
    frames = encoder.encode(noise(24000)) + encoder.drain()
    assert len(read_mp3(b"".join(frames))) == len(frames) * 576


@pytest.mark.parametrize("data", [b"", b"nothing of the kind", b"\xff\xf3\x84\xc4" + bytes(10)])
def test_what_is_no_mp3_is_refused(data):
    with pytest.raises(ValueError, match="Error opening"):
        read_mp3(data)


def test_without_the_library_only_flac_is_refused_and_the_extra_named():
    script = """
import sys
sys.modules["soundfile"] = None
from voxgate.codecs.packetizer import UnsupportedCodec, choose_format
choose_format("mp3", 24000, 20, 24000)
try:
    choose_format("flac", 24000, 20, 24000)
except UnsupportedCodec as refused:
    print(refused)
"""
    told = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert "voxgate[flac]" in told
    assert "there are opus, ogg_opus, pcm_s16le, mulaw, alaw, wav, mp3" in told


def test_the_library_is_not_loaded_before_it_is_needed():
    script = "import sys, voxgate.codecs.packetizer; print('soundfile' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True) == "False\n"
