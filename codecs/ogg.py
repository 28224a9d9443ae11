"""Opus in Ogg: pages and headers out (RFC 3533, RFC 7845), and packets back.

Granule positions, pre-skip and everything else counted here is in samples at 48 kHz, whatever the encoder's rate. Knows
no encoder and no decoder: a packet is bytes, and the caller says where it ends.

    OggError
"""

import random
import struct
import zlib
from collections.abc import Sequence

GRANULE_RATE = 48000  # Hz, RFC 7845, section 4

_PAGE = struct.Struct("<4sBBqIIIB")  # capture pattern, version, flags, granule, serial, number, checksum, segments
_CHECKSUM_AT = 22
_CONTINUED, _FIRST, _LAST = 1, 2, 4
_HEAD = struct.Struct("<8sBBHIhB")  # magic, version, channels, pre-skip, input rate, gain, mapping family
_MOST_SEGMENTS = 255


class OggError(ValueError):
    """Not pages, or not the pages of an Opus stream."""


class OggOpusWriter:
    """The pages of one mono stream, in order."""

    def __init__(self, pre_skip: int, input_rate: int, serial: int | None = None):
        """`input_rate`: Hz, what a player may show; it always decodes at 48 kHz."""
        self._pre_skip = pre_skip
        self._input_rate = input_rate
        # By chance, so that streams put one behind the other into one file stay apart (RFC 3533, section 4).
        self._serial = random.getrandbits(32) if serial is None else serial
        self._pages = 0

    def headers(self) -> bytes:
        """The two pages before the audio, each of which must be alone on its page."""
        head = _HEAD.pack(b"OpusHead", 1, 1, self._pre_skip, self._input_rate, 0, 0)
        vendor = b"voxgate"
        tags = b"OpusTags" + struct.pack("<I", len(vendor)) + vendor + struct.pack("<I", 0)
        return self._page([head], 0, _FIRST) + self._page([tags], 0, 0)

    def page(self, packets: Sequence[bytes], granule: int, *, last: bool = False) -> bytes:
        """One page of whole packets. `granule`: samples decoded up to its end, pre-skip included; for the last page,
        pre-skip and length of the stream, which cuts what its last packet holds too much."""
        return self._page(packets, granule, _LAST if last else 0)

    def _page(self, packets: Sequence[bytes], granule: int, flags: int) -> bytes:
        lacing = b"".join(b"\xff" * (len(packet) // 255) + bytes([len(packet) % 255]) for packet in packets)
        if len(lacing) > _MOST_SEGMENTS:
            raise ValueError(f"{len(packets)} packets need {len(lacing)} segments, a page has {_MOST_SEGMENTS}")
        header = _PAGE.pack(b"OggS", 0, flags, granule, self._serial, self._pages, 0, len(lacing))
        self._pages += 1
        page = bytearray(b"".join((header, lacing, *packets)))
        page[_CHECKSUM_AT : _CHECKSUM_AT + 4] = struct.pack("<I", checksum(page))
        return bytes(page)


class OggOpusReader:
    """The packets of one stream, whose bytes may come cut anywhere."""

    def __init__(self) -> None:
        self.pre_skip: int | None = None  # known with the first page
        self.end: int | None = None  # the granule of the last page, once that has come
        self._unread = b""
        self._headers = 0
        self._serial = 0
        self._pages = 0
        self._begun = b""  # a packet whose rest is on the next page

    def push(self, data: bytes) -> list[bytes]:
        """The audio packets that `data` completes. Raises `OggError`."""
        self._unread += data
        packets: list[bytes] = []
        while (page := self._take_page()) is not None:
            packets += page
        while packets and self._headers < 2:
            self._read_header(packets.pop(0))
        return packets

    def _take_page(self) -> list[bytes] | None:
        """The packets that end on the next page; None while that is not there whole."""
        data = self._unread
        if len(data) < _PAGE.size:
            return None
        magic, version, flags, granule, serial, number, expected, segments = _PAGE.unpack_from(data)
        if magic != b"OggS" or version:
            raise OggError(f"no Ogg page: {bytes(data[:4])!r}")
        body = _PAGE.size + segments
        lacing = data[_PAGE.size : body]
        size = body + sum(lacing)
        if len(lacing) < segments or len(data) < size:
            return None
        page, self._unread = data[:size], data[size:]
        if checksum(page[:_CHECKSUM_AT] + bytes(4) + page[_CHECKSUM_AT + 4 :]) != expected:
            raise OggError(f"page {number} has a wrong checksum")
        if self._pages == 0:
            self._serial = serial
        in_order = serial == self._serial and number == self._pages and bool(flags & _FIRST) == (number == 0)
        if not in_order or self.end is not None:
            raise OggError(f"page {number} of stream {serial:#x} came for page {self._pages} of {self._serial:#x}")
        if bool(flags & _CONTINUED) != bool(self._begun):
            raise OggError(f"page {number} does not go on with the packet before")
        self._pages += 1
        if flags & _LAST:
            self.end = granule
        return self._cut(page, body, lacing)

    def _cut(self, page: bytes, at: int, lacing: bytes) -> list[bytes]:
        packets: list[bytes] = []
        for size in lacing:
            self._begun += page[at : at + size]
            at += size
            if size < 255:
                packets.append(self._begun)
                self._begun = b""
        return packets

    def _read_header(self, packet: bytes) -> None:
        self._headers += 1
        if self._headers == 2:
            if not packet.startswith(b"OpusTags"):
                raise OggError("the second packet is no OpusTags")
            return
        if len(packet) < _HEAD.size or not packet.startswith(b"OpusHead"):
            raise OggError("the first packet is no OpusHead")
        _, version, channels, self.pre_skip, _, _, family = _HEAD.unpack_from(packet)
        if version > 15 or channels != 1 or family:
            raise OggError(f"version {version}, {channels} channels, mapping {family}: only mono is read here")


def checksum(page: bytes | bytearray) -> int:
    """The CRC of a page whose checksum field is zero: polynomial 0x04C11DB7, highest bit first, no inversions.

    zlib counts the same polynomial from the lowest bit and inverts before and after: so turn the bits of every byte
    round, undo the inversions, and turn the result round.
    """
    turned = zlib.crc32(page.translate(_TURNED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int.from_bytes(turned.to_bytes(4, "little").translate(_TURNED), "big")


_TURNED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
