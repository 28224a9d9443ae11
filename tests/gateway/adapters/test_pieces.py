import pytest

from voxgate.codecs.packetizer import Packet, choose_format
from voxgate.gateway.adapters.pieces import pieces, silence, text_of

FORM = choose_format("pcm_s16le", 24000, 20, 24000)


def packets(count: int) -> list[Packet]:
    return [Packet(bytes([number]) * 960, number * 480, (number + 1) * 480) for number in range(count)]


def test_audio_is_cut_into_pieces_of_at_most_200_ms_and_none_is_lost():
    cut = list(pieces(FORM, packets(25)))

    assert [len(piece) // 960 for piece in cut] == [10, 10, 5]
    assert b"".join(cut) == b"".join(packet.payload for packet in packets(25))


def test_a_packet_longer_than_that_is_a_piece():
    assert list(pieces(FORM, [Packet(b"page", 0, 24000), Packet(b"next", 24000, 48000)])) == [b"page", b"next"]


def test_bytes_are_base64():
    assert text_of({"audio": b"\x00\xff\x10"}) == '{"audio":"AP8Q"}'


@pytest.mark.parametrize(
    ("codec", "rate", "expected"),
    [
        ("pcm_s16le", 24000, bytes(1920)),
        ("mulaw", 8000, b"\xff" * 320),
        ("alaw", 8000, b"\xd5" * 320),
        ("mp3", 24000, b""),
    ],
)
def test_silence_is_40_ms_where_no_encoder_is_needed(codec: str, rate: int, expected: bytes):
    assert silence(codec, rate) == expected
