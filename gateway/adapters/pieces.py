"""How audio is cut for messages that carry it in JSON, and the sound of a turn that failed.

Whole samples, and short: the clients allow 1 MiB, a barge-in should throw little away, and 200 ms are enough for all.
"""

from collections.abc import Iterator

import msgspec

from ...codecs.packetizer import Format, Packet, pack_audio

PIECE_S = 0.2
SILENCE_S = 0.04
WAIT_MS = 1000  # a bot would rather wait so long than lose a turn; what comes after 3 s pipecat throws away
_SAMPLE_BYTES = {"pcm_s16le": (2, b"\0"), "mulaw": (1, b"\xff"), "alaw": (1, b"\xd5")}

_encoder = msgspec.json.Encoder()


def text_of(message: object) -> str:
    """The JSON of a message; bytes in it become base64."""
    return _encoder.encode(message).decode()


def pieces(form: Format, packets: list[Packet]) -> Iterator[bytes]:
    """The payloads of `packets`, each of at most `PIECE_S`, but at least one packet."""
    group: list[Packet] = []
    for packet in packets:
        if group and packet.end - group[0].start > PIECE_S * form.sample_rate:
            yield pack_audio(form, group)
            group = []
        group.append(packet)
    if group:
        yield pack_audio(form, group)


def silence(codec: str, sample_rate: int) -> bytes:
    """A little of it, where that can be said without an encoder; else nothing.

    pipecat gives a service up for good after three turns without any audio, whatever errors it was told: a turn that
    is refused for load must have some.
    """
    size, zero = _SAMPLE_BYTES.get(codec, (0, b""))
    return zero * (size * int(SILENCE_S * sample_rate))
