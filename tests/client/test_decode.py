import numpy as np
import pytest

from scripted_peer import started
from voxgate.client import Audio, ProtocolError, Started
from voxgate.client.decode import Decoder
from voxgate.codecs.packetizer import Packetizer, choose_format, pack_audio


def settled(codec: str, pre_skip: int = 0) -> Started:
    fields = started("c1", codec=codec, pre_skip=pre_skip)
    del fields["type"]
    return Started(**fields)


def audio(payload: bytes) -> Audio:
    return Audio(1, 0, 0, payload, True, 0.0)


def test_pcm_passes_as_it_is():
    assert Decoder(settled("pcm_s16le")).push(audio(b"\1\0\2\0")) == b"\1\0\2\0"


def test_opus_is_decoded_from_the_first_sample_of_the_context():
    tone = (np.sin(np.arange(24000) * 2 * np.pi * 440 / 24000) * 8000).astype(np.int16)
    form = choose_format("opus", 24000, 20, 24000)
    packetizer = Packetizer(form, 24000)
    packets = packetizer.push(tone) + packetizer.finish()
    decoder = Decoder(settled("opus", form.pre_skip))

    payloads = [pack_audio(form, packets[at : at + 7]) for at in range(0, len(packets), 7)]
    decoded = np.frombuffer(b"".join(decoder.push(audio(payload)) for payload in payloads), "<i2")

    assert len(tone) <= len(decoded) < len(tone) + form.frame_samples
    inside = slice(2400, 21600)  # away from where the encoder settles
    similarity = np.corrcoef(tone[inside], decoded[: len(tone)][inside])[0, 1]
    assert similarity > 0.99  # a shift of two samples would already cost more


@pytest.mark.parametrize(("codec", "payload"), [("pcm_s16le", b"\1\0\2"), ("opus", b"\0\2\xff\xff")])
def test_a_payload_that_is_not_what_was_announced_is_a_protocol_error(codec, payload):
    with pytest.raises(ProtocolError):
        Decoder(settled(codec)).push(audio(payload))


def test_a_codec_without_decoder_is_refused_by_name():
    with pytest.raises(ValueError, match="mp3"):
        Decoder(settled("mp3"))
