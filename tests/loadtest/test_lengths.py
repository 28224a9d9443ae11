import numpy as np
import pytest

from voxgate.client import Audio, ProtocolError, Started
from voxgate.codecs.packetizer import WIRE_CODECS, Packetizer, choose_format, pack_audio
from voxgate.loadtest.lengths import Lengths

SPEECH = (8000 * np.sin(np.arange(50_123) / 20)).astype(np.int16)


@pytest.mark.parametrize("sample_rate", [8000, 24000, 48000])
@pytest.mark.parametrize("codec", WIRE_CODECS)
def test_every_message_ends_where_the_next_begins_and_the_last_with_the_context(codec: str, sample_rate: int):
    form = choose_format(codec, sample_rate, 20, 24000)
    packetizer = Packetizer(form, 24000)
    groups = [packetizer.push(SPEECH[at : at + 7000]) for at in range(0, len(SPEECH), 7000)] + [packetizer.finish()]
    messages = [
        Audio(1, number, group[0].start, pack_audio(form, group), number == 0, 0.0)
        for number, group in enumerate(group for group in groups if group)
    ]
    lengths = Lengths(
        Started("c1", 1, "heart", "realtime", codec, form.sample_rate, 1, form.frame_samples, form.pre_skip)
    )

    ends = [lengths.end_of(message) for message in messages]

    assert ends[:-1] == [message.start for message in messages[1:]]
    assert 0 <= ends[-1] - packetizer.samples < (form.frame_samples if codec in ("opus", "mp3") else 1)


def test_what_is_no_mp3_is_told():
    started = Started("c1", 1, "heart", "realtime", "mp3", 24000, 1, 576, 1105)

    with pytest.raises(ProtocolError, match="no MP3 frame"):
        Lengths(started).end_of(Audio(1, 0, 0, b"rubbish!", True, 0.0))
