import numpy as np
import pytest

from voxgate.codecs.ogg import OggError
from voxgate.codecs.opus import OpusError
from voxgate.codecs.packetizer import WIRE_CODECS, Packetizer, choose_format, pack_audio
from voxgate.codecs.unpacking import unpacker


def payloads(codec: str, samples: int, per_payload: int) -> tuple[list[bytes], int]:
    """A context of a rising tone as it travels, and the rate it has."""
    form = choose_format(codec, 24000, 20, 24000)
    packetizer = Packetizer(form, 24000)
    sweep = np.rint(9000 * np.sin(np.arange(samples) ** 2 / 400000)).astype(np.int16)
    packets = packetizer.push(sweep) + packetizer.finish()
    messages = [packets[at : at + per_payload] for at in range(0, len(packets), per_payload)]
    return [pack_audio(form, message) for message in messages], form.sample_rate


def unpacked(codec: str, pieces: list[bytes], rate: int):
    stream = unpacker(codec, rate)
    return np.concatenate([*map(stream.push, pieces), stream.finish()])


@pytest.mark.parametrize("codec", WIRE_CODECS)
def test_the_cut_into_payloads_changes_nothing(codec):
    few, rate = payloads(codec, 30000, 1000)
    many, _ = payloads(codec, 30000, 1)
    assert np.array_equal(unpacked(codec, few, rate), unpacked(codec, many, rate))


def test_ogg_is_trimmed_at_both_ends_and_may_be_cut_anywhere():
    (data,), rate = payloads("ogg_opus", 12345, 1000)
    assert len(unpacked("ogg_opus", [data[at : at + 7] for at in range(0, len(data), 7)], rate)) == 12345


def test_an_ogg_stream_that_breaks_off_is_an_error_in_the_end():
    pieces, rate = payloads("ogg_opus", 12345, 1)
    with pytest.raises(ValueError, match="without its last page"):
        unpacked("ogg_opus", pieces[:-1], rate)


@pytest.mark.parametrize(
    ("codec", "payload", "error"),
    [
        ("opus", b"\x00", ValueError),
        ("opus", b"\x00\x09ab", ValueError),
        ("opus", b"\x00\x01\xff", OpusError),
        ("ogg_opus", bytes(100), OggError),
        ("pcm_s16le", b"abc", ValueError),
        ("wav", bytes(44), ValueError),
    ],
)
def test_what_is_no_such_stream_is_refused(codec, payload, error):
    with pytest.raises(error):
        unpacker(codec, 24000).push(payload)


@pytest.mark.parametrize("codec", ["flac", "aac", ""])
def test_a_codec_that_is_not_of_the_wire_is_refused(codec):
    with pytest.raises(ValueError, match="cannot decode"):
        unpacker(codec, 24000)
