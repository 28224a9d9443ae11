import io
import struct
import subprocess
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.codecs.wav import WavReader, stream_header

SAMPLES = bytes(range(200))


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack("<4sI", name, len(body)) + body + bytes(len(body) % 2)


def wav(*chunks: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 0) + b"WAVE" + b"".join(chunks)


FMT = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, 24000, 48000, 2, 16))


def test_a_stream_has_the_usual_44_bytes_with_sizes_that_say_nobody_knows():
    with wave.open(whole := io.BytesIO(), "wb") as file:
        file.setparams((1, 2, 22050, 0, "NONE", ""))
        file.writeframes(b"")
    header = stream_header(22050)
    unknown = b"\xff\xff\xff\xff"
    assert header[4:8] == header[40:44] == unknown
    assert header[:4] + header[8:40] == whole.getvalue()[:4] + whole.getvalue()[8:40]
    assert len(header) == 44


@pytest.mark.parametrize("rate", [8000, 16000, 22050, 24000, 44100, 48000])
def test_ffmpeg_reads_all_of_a_stream_without_a_length_at_its_rate(rate, tmp_path):
    path = tmp_path / "x.wav"
    path.write_bytes(stream_header(rate) + SAMPLES)
    read = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "s16le", "-"], check=True, capture_output=True)
    probe = ["ffprobe", "-v", "error", "-of", "csv=p=0", "-show_entries", "stream=codec_name,sample_rate,channels"]
    assert (read.stdout, read.stderr) == (SAMPLES, b"")
    assert subprocess.check_output([*probe, path], text=True).strip() == f"pcm_s16le,{rate},1"


@given(cuts=st.lists(st.integers(0, 44 + len(SAMPLES)), max_size=8))
def test_however_a_stream_is_cut_its_samples_are_what_is_behind_the_header(cuts):
    data, reader = stream_header(16000) + SAMPLES, WavReader()
    ends = [*sorted(cuts), len(data)]
    assert b"".join(reader.push(data[a:b]) for a, b in zip([0, *ends], ends, strict=False)) == SAMPLES
    assert reader.rate == 16000


def test_chunks_before_the_samples_are_passed_over_odd_ones_with_their_padding():
    reader = WavReader()
    assert reader.push(wav(chunk(b"LIST", b"odd"), FMT, chunk(b"fact", bytes(4)), chunk(b"data", SAMPLES))) == SAMPLES
    assert reader.rate == 24000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"OggS" + bytes(40), "no WAV header"),
        (b"RIFF\0\0\0\0AVI ", "no WAV header"),
        (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 1, 2, 24000, 96000, 4, 16))), "2 channels"),
        (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8))), "kind 7"),
        (wav(chunk(b"LIST", bytes(5000))), "4 KiB"),
    ],
)
def test_what_is_no_mono_16_bit_wav_is_refused(data, reason):
    with pytest.raises(ValueError, match=reason):
        WavReader().push(data)
