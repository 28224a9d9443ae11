import numpy as np
import pytest

from scripted_peer import started
from voxgate.client import Audio, ProtocolError, Started
from voxgate.client.decode import DECODABLE, Decoder
from voxgate.codecs.packetizer import WIRE_CODECS, Packetizer, choose_format, pack_audio


def settled(codec: str, pre_skip: int = 0, sample_rate: int = 24000) -> Started:
    fields = started("c1", codec=codec, pre_skip=pre_skip, sample_rate=sample_rate)
    del fields["type"]
    return Started(**fields)


def audio(payload: bytes) -> Audio:
    return Audio(1, 0, 0, payload, True, 0.0)


def test_pcm_passes_as_it_is():
    assert Decoder(settled("pcm_s16le")).push(audio(b"\1\0\2\0")) == b"\1\0\2\0"


@pytest.mark.parametrize("codec", DECODABLE)
def test_every_codec_is_decoded_from_the_first_sample_of_the_context(codec):
    tone = (np.sin(np.arange(24000) * 2 * np.pi * 440 / 24000) * 8000).astype(np.int16)
    form = choose_format(codec, 24000, 20, 24000)
    packetizer = Packetizer(form, 24000)
    packets = packetizer.push(tone) + packetizer.finish()
    decoder = Decoder(settled(codec, form.pre_skip, form.sample_rate))

    payloads = [pack_audio(form, packets[at : at + 7]) for at in range(0, len(packets), 7)]
    decoded = b"".join(decoder.push(audio(payload)) for payload in payloads) + decoder.finish()
    heard = np.frombuffer(decoded, "<i2")

    expected = (np.sin(np.arange(form.sample_rate) * 2 * np.pi * 440 / form.sample_rate) * 8000).astype(np.int16)
    assert len(expected) <= len(heard) < len(expected) + form.frame_samples
    inside = slice(form.sample_rate // 10, -form.sample_rate // 10)  # away from where an encoder settles
    similarity = np.corrcoef(expected[inside], heard[: len(expected)][inside])[0, 1]
    assert similarity > 0.99  # a shift of two samples would already cost more


def test_every_codec_of_the_wire_can_be_decoded():
    assert set(DECODABLE) == set(WIRE_CODECS)


@pytest.mark.parametrize(
    ("codec", "payload"),
    [
        ("pcm_s16le", b"\1\0\2"),
        ("opus", b"\0\2\xff\xff"),
        ("opus", b"\0\3abc\0"),
        ("wav", b"OggS and so on"),
        ("ogg_opus", b"RIFF" + bytes(60)),
    ],
)
def test_a_payload_that_is_not_what_was_announced_is_a_protocol_error(codec, payload):
    with pytest.raises(ProtocolError):
        Decoder(settled(codec)).push(audio(payload))


def test_an_end_that_comes_too_early_is_a_protocol_error():
    with pytest.raises(ProtocolError, match="without its last page"):
        Decoder(settled("ogg_opus")).finish()


def test_nothing_is_nothing():
    for codec in ("opus", "pcm_s16le", "wav", "mulaw", "alaw", "mp3"):
        assert Decoder(settled(codec, sample_rate=8000)).finish() == b""


def test_a_codec_without_decoder_is_refused_by_name():
    with pytest.raises(ValueError, match="aac"):
        Decoder(settled("aac"))
