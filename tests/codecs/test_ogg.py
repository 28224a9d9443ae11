import struct
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxgate.codecs.ogg import OggError, OggOpusReader, OggOpusWriter, checksum
from voxgate.codecs.opus import OpusEncoder, lookahead
from voxgate.codecs.packetizer import FRAME_MS, Packetizer, choose_format, pack_audio

packets = st.lists(st.binary(max_size=600), max_size=20)


def written(*content: list[bytes], serial=7) -> bytes:
    """A stream of pages with these packets, the last one marked."""
    writer = OggOpusWriter(312, 24000, serial)
    data = writer.headers()
    for number, page in enumerate(content, 1):
        data += writer.page(page, 960 * number, last=number == len(content))
    return data


def raw_page(flags: int, number: int, lacing: bytes, body: bytes) -> bytes:
    """Any page of the stream with serial 7."""
    page = struct.pack("<4sBBqIIIB", b"OggS", 0, flags, 960, 7, number, 0, len(lacing)) + lacing + body
    return page[:22] + struct.pack("<I", checksum(page)) + page[26:]


def pages(data: bytes) -> list[tuple[int, int, int, int, bytes]]:
    """Flags, granule, serial, number and body of every page."""
    found = []
    while data:
        magic, _, flags, granule, serial, number, _, segments = struct.unpack_from("<4sBBqIIIB", data)
        assert magic == b"OggS"
        size = sum(data[27 : 27 + segments])
        found.append((flags, granule, serial, number, data[27 + segments : 27 + segments + size]))
        data = data[27 + segments + size :]
    return found


def spoken(samples: int, rate=24000, frame_ms=20.0, push=1440) -> bytes:
    """A tone of `samples` at `rate` as a file."""
    pcm = np.rint(9000 * np.sin(np.arange(samples) * 2 * np.pi * 440 / rate)).astype(np.int16)
    format = choose_format("ogg_opus", rate, frame_ms, rate)
    packetizer = Packetizer(format, rate)
    out = [packet for at in range(0, samples, push) for packet in packetizer.push(pcm[at : at + push])]
    return pack_audio(format, out + packetizer.finish())


def test_the_checksum_is_that_of_ogg():
    """The polynomial's own bits, from one byte of 1: the definition; and the known answer for the usual test text."""
    assert checksum(b"\x01") == 0x04C11DB7
    assert checksum(b"123456789") == 0x89A1897F  # CRC-32/MPEG-2 without its initial value
    assert checksum(bytes(100)) == 0


def test_headers_are_alone_on_their_pages_and_only_the_first_is_marked_first():
    head, tags = pages(OggOpusWriter(312, 24000, 7).headers())
    assert head == (2, 0, 7, 0, b"OpusHead\x01\x01\x38\x01\xc0\x5d\0\0\0\0\0")
    assert tags == (0, 0, 7, 1, b"OpusTags\x07\0\0\0voxgate\0\0\0\0")


def test_streams_are_told_apart_by_their_serials():
    first_pages = {OggOpusWriter(312, 24000).headers()[14:18] for _ in range(20)}
    assert len(first_pages) == 20


@settings(deadline=None)
@given(st.lists(packets, min_size=1, max_size=5), st.data())
def test_however_a_stream_is_cut_its_packets_come_back(content, data):
    stream = written(*content)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    reader = OggOpusReader()
    back = [
        packet for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) for packet in reader.push(stream[a:b])
    ]
    assert back == [packet for page in content for packet in page]
    assert (reader.pre_skip, reader.end) == (312, 960 * len(content))


def test_a_packet_that_goes_on_on_the_next_page_comes_back_whole():
    long = bytes(range(256)) * 3
    begun = raw_page(0, 2, b"\xff\xff", long[:510])
    rest = raw_page(1 | 4, 3, b"\xff\x03", long[510:])
    headers = OggOpusWriter(312, 24000, 7).headers()
    assert OggOpusReader().push(headers + begun + rest) == [long]
    with pytest.raises(OggError, match="does not go on"):
        OggOpusReader().push(headers + raw_page(0, 2, b"\xff\xff", long[:510]) + raw_page(0, 3, b"\x01", b"x"))


def test_more_packets_than_a_page_has_segments_for_are_refused():
    with pytest.raises(ValueError, match="256 segments"):
        OggOpusWriter(312, 24000).page([b"x"] * 256, 0)


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (b"RIFF" + bytes(40), "no Ogg page"),
        (written([b"a"])[:-1] + b"b", "wrong checksum"),
        (written([b"a"]) + raw_page(4, 3, b"\x01", b"b"), "came for page"),
        (written([b"a"], [b"b"], serial=1)[:-29] + raw_page(4, 3, b"\x01", b"b"), "came for page"),
        (written([b"a"], [b"b"])[:-29] + raw_page(4, 4, b"\x01", b"b"), "came for page"),
        (written([b"a"])[47:], "came for page"),
        (raw_page(2, 0, b"\x07", b"\x01vorbis"), "no OpusHead"),
        (OggOpusWriter(312, 24000, 7).headers()[:47] + raw_page(0, 1, b"\x01", b"x"), "no OpusTags"),
        (raw_page(2, 0, b"\x13", b"OpusHead\x01\x02" + bytes(9)), "2 channels"),
    ],
    ids=[
        "another format",
        "a broken byte",
        "after the end",
        "another stream",
        "a gap",
        "no first page",
        "vorbis",
        "no tags",
        "stereo",
    ],
)
def test_what_is_no_stream_is_refused(stream, reason):
    with pytest.raises(OggError, match=reason):
        OggOpusReader().push(stream)


def tool(*command: object) -> str:
    done = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 48000])
@pytest.mark.parametrize("seconds", [0, 1 / 48000, 0.02, 0.3, 0.9999, 3])
def test_opusinfo_has_nothing_to_say_and_opusdec_gives_every_sample(seconds, rate, tmp_path):
    path, decoded = tmp_path / "x.ogg", tmp_path / "x.raw"
    samples = round(seconds * rate)
    path.write_bytes(spoken(samples, rate))
    said = tool("opusinfo", path)
    assert "WARNING" not in said
    assert "Logical stream 1 ended" in said
    assert f"Original sample rate: {rate} Hz" in said
    assert f"Playback length: 0m:{int(samples * 1000 / rate) / 1000:06.3f}s" in said
    tool("opusdec", "--quiet", "--rate", 48000, path, tmp_path / "x.wav")
    (tmp_path / "x.wav").rename(decoded)
    assert decoded.stat().st_size - 44 == 2 * samples * 48000 // rate


@settings(deadline=None, max_examples=60)
@given(
    rate=st.sampled_from((8000, 16000, 24000, 48000)),
    frame_ms=st.sampled_from(FRAME_MS),
    samples=st.integers(1, 30000),
    push=st.integers(300, 9000),
)
def test_granules_count_what_is_decoded_and_the_end_cuts_the_last_packet(rate, frame_ms, samples, push):
    head, tags, *audio = pages(spoken(samples, rate, frame_ms, push))
    factor = 48000 // rate
    assert [page[0] for page in (head, tags, *audio)] == [2, 0, *[0] * (len(audio) - 1), 4]
    assert [page[3] for page in (head, tags, *audio)] == list(range(len(audio) + 2))
    assert len({page[2] for page in (head, tags, *audio)}) == 1
    assert all(page[4] for page in audio)  # no page without a packet
    granules = [page[1] for page in audio]
    frame = round(rate * frame_ms / 1000) * factor
    assert granules[-1] == (lookahead(rate) + samples) * factor
    assert granules == sorted(set(granules))
    assert all(granule % frame == 0 for granule in granules[:-1])
    packets_before_the_last = granules[-2] // frame if len(granules) > 1 else 0
    assert granules[-1] > packets_before_the_last * frame


def test_the_packets_are_those_of_the_encoder():
    pcm = np.rint(9000 * np.sin(np.arange(4800) * 2 * np.pi * 440 / 24000)).astype(np.int16)
    assert OggOpusReader().push(spoken(4800))[:10] == OpusEncoder(24000, 480).encode(pcm)


def test_ffmpeg_counts_the_same(tmp_path):
    path = tmp_path / "x.ogg"
    path.write_bytes(spoken(12345))
    probe = ["ffprobe", "-v", "error", "-of", "csv=p=0", "-show_entries", "stream=codec_name,channels:format=duration"]
    assert tool(*probe, path).split() == ["opus,1", f"{(12345 * 2 + 312) / 48000:.6f}"]
    out = subprocess.run(["ffmpeg", "-v", "warning", "-i", path, "-f", "s16le", "-"], check=True, capture_output=True)
    assert (len(out.stdout), out.stderr) == (2 * 2 * 12345, b"")
