import os
import threading
from pathlib import Path

import numpy as np
import pytest

from voxgate.codecs.opus import (
    OPUS_FRAME_MS,
    OPUS_RATES,
    Application,
    OpusDecoder,
    OpusEncoder,
    OpusError,
    OpusSettings,
    RateControl,
    lookahead,
)


def noise(samples):
    return np.random.default_rng(samples).integers(-8000, 8000, samples).astype(np.int16)


@pytest.mark.parametrize("rate", OPUS_RATES)
@pytest.mark.parametrize("frame_ms", OPUS_FRAME_MS)
def test_each_frame_becomes_one_packet_of_the_same_duration(rate, frame_ms):
    frame = round(rate * frame_ms / 1000)
    packets = OpusEncoder(rate, frame).encode(noise(3 * frame))
    decoder = OpusDecoder(rate)
    assert [len(decoder.decode(packet)) for packet in packets] == [frame] * 3


def test_no_samples_are_no_packets():
    assert OpusEncoder(24000, 480).encode(np.zeros(0, np.int16)) == []


def test_frames_encoded_together_equal_frames_encoded_one_by_one():
    pcm = noise(10 * 480)
    single = OpusEncoder(24000, 480)
    one_by_one = [packet for at in range(0, len(pcm), 480) for packet in single.encode(pcm[at : at + 480])]
    assert OpusEncoder(24000, 480).encode(pcm) == one_by_one


@pytest.mark.parametrize(
    "pcm",
    [np.zeros(481, np.int16), np.zeros(960, np.int16)[::2], np.zeros(480, np.float32)],
    ids=["part of a frame", "strided", "float"],
)
def test_what_is_not_whole_frames_in_a_row_is_refused(pcm):
    encoder = OpusEncoder(24000, 480)
    with pytest.raises(ValueError, match=r"frames of 480"):
        encoder.encode(pcm)


def test_the_look_ahead_is_6_5_ms_at_every_rate():
    assert {rate: lookahead(rate) for rate in OPUS_RATES} == {rate: rate * 13 // 2000 for rate in OPUS_RATES}


def test_the_look_ahead_is_the_encoders_own():
    assert OpusEncoder(48000, 960, OpusSettings(Application.RESTRICTED_LOWDELAY, 1, 64000)).lookahead == 120


def test_an_unknown_rate_is_a_typed_error_with_the_librarys_words():
    with pytest.raises(OpusError, match="invalid argument") as refused:
        OpusEncoder(22050, 441)
    assert refused.value.code == -1


def test_a_frame_length_opus_does_not_have_is_a_typed_error():
    with pytest.raises(OpusError, match="encoding: invalid argument"):
        OpusEncoder(24000, 500).encode(np.zeros(500, np.int16))


def test_a_setting_out_of_range_is_a_typed_error():
    with pytest.raises(OpusError, match="setting up an encoder: invalid argument"):
        OpusEncoder(24000, 480, OpusSettings(Application.AUDIO, 11, 64000))


def test_a_broken_packet_is_a_typed_error_and_the_decoder_goes_on():
    encoder, decoder = OpusEncoder(24000, 480), OpusDecoder(24000)
    with pytest.raises(OpusError, match="corrupted stream"):
        decoder.decode(b"\xff")
    assert len(decoder.decode(encoder.encode(noise(480))[0])) == 480


def test_constant_bitrate_gives_packets_of_one_size():
    constant = OpusSettings(Application.AUDIO, 1, 32000, RateControl.CBR)
    packets = OpusEncoder(24000, 480, constant).encode(noise(48000))
    assert {len(packet) for packet in packets} == {80}


@pytest.mark.parametrize(
    ("rate", "bitrate"), [(8000, 32000), (12000, 48000), (16000, 48000), (24000, 64000), (48000, 80000)]
)
def test_as_shipped_a_stream_has_the_bitrate_of_its_sample_rate(rate, bitrate):
    packets = OpusEncoder(rate, rate // 50).encode(noise(10 * rate))
    assert sum(map(len, packets)) * 8 / 10 == pytest.approx(bitrate, rel=0.15)


@pytest.mark.parametrize("rate", OPUS_RATES)
def test_as_shipped_every_packet_is_celt(rate):
    packets = OpusEncoder(rate, rate // 50).encode(noise(rate))
    assert all(packet[0] >> 3 >= 16 for packet in packets)  # RFC 6716, table 2: configurations 16 to 31


def test_encoders_and_decoders_that_are_let_go_leave_no_memory_behind():
    def resident_bytes():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident_bytes()
    for _ in range(3000):  # 31 KiB and 18 KiB each
        OpusEncoder(24000, 480).encode(np.zeros(480, np.int16))
        OpusDecoder(24000)
    assert resident_bytes() - before < 20 << 20


def test_encoders_in_many_threads_do_not_disturb_one_another():
    pcm = noise(100 * 480)
    expected = OpusEncoder(24000, 480).encode(pcm)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(OpusEncoder(24000, 480).encode(pcm)), daemon=True)
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8
