import itertools
import subprocess

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from voxgate.codecs.packetizer import (
    CODECS,
    FRAME_MS,
    PAGE_SECONDS,
    SAMPLE_RATES,
    WIRE_CODECS,
    Format,
    Packet,
    Packetizer,
    StreamDecoder,
    UnsupportedCodec,
    choose_format,
    pack_audio,
)
from voxgate.codecs.resample import resampled_length

SOURCE = 24000
EVERY_FORMAT = list(  # what is really sent, each once
    {choose_format(*asked, SOURCE): asked for asked in itertools.product(WIRE_CODECS, SAMPLE_RATES, FRAME_MS)}.values()
)
BARE = ("opus", "pcm_s16le", "mulaw", "alaw")  # the others are files by themselves
OWN_FRAMES = ("mp3", "flac")
EXACT = ("pcm_s16le", "wav", "flac")  # bit for bit

formats = st.builds(choose_format, *map(st.sampled_from, (CODECS, SAMPLE_RATES, FRAME_MS)), st.just(SOURCE))
wire_formats = st.builds(choose_format, *map(st.sampled_from, (WIRE_CODECS, SAMPLE_RATES, FRAME_MS)), st.just(SOURCE))
lengths = st.one_of(st.integers(0, 700), st.integers(0, 20000))


def noise(samples):
    return np.random.default_rng(samples).integers(-20000, 20000, samples).astype(np.int16)


def tone(samples, rate, hertz=440.0, amplitude=12000):
    return np.rint(amplitude * np.sin(2 * np.pi * hertz * np.arange(samples) / rate)).astype(np.int16)


def speechlike(seconds, rate):
    """Sixty partials below 3 kHz in syllables: the same sound at every rate, and one an alignment can be read from."""
    time = np.arange(round(seconds * rate)) / rate
    chance = np.random.default_rng(1)
    hertz, phase = chance.uniform(100, 3000, (60, 1)), chance.uniform(0, 2 * np.pi, (60, 1))
    sound = np.sum(np.cos(2 * np.pi * hertz * time + phase), axis=0) * np.sin(4 * np.pi * time) ** 2
    return np.rint(sound * 800).astype(np.int16)


def packetized(format, pcm, cuts=(), source=SOURCE):
    """All packets of a context, and its length."""
    packetizer = Packetizer(format, source)
    packets = [packet for piece in np.split(pcm, sorted(cuts)) for packet in packetizer.push(piece)]
    return packets + packetizer.finish(), packetizer.samples


def heard(format, packets, samples, per_message=1):
    """What a listener hears of them, sent in messages of `per_message` packets."""
    if format.codec == "flac":
        return played("flac", pack_audio(format, packets))
    decoder = StreamDecoder(format)
    messages = [packets[at : at + per_message] for at in range(0, len(packets), per_message)]
    pieces = [decoder.push(pack_audio(format, message)) for message in messages]
    return np.concatenate([*pieces, decoder.finish(samples)])


PLAYERS = {  # from stdin to bare samples on stdout
    "flac": ["flac", "-d", "-s", "-c", "--force-raw-format", "--endian=little", "--sign=signed", "-"],
    "mp3": ["mpg123", "-q", "-s", "-"],
    "ogg_opus": ["opusdec", "--quiet", "--rate", "48000", "--no-dither", "-", "-"],
    "wav": ["ffmpeg", "-v", "error", "-f", "wav", "-i", "-", "-f", "s16le", "-"],
}


def played(codec, data):
    """What a player of the distribution makes of a file."""
    read = subprocess.run(PLAYERS[codec], input=data, check=True, capture_output=True).stdout
    return np.frombuffer(read, "<i2")


class TestChoosingAFormat:
    def test_the_default_is_opus_in_frames_of_20_ms(self):
        assert choose_format("opus", 24000, 20, 24000) == Format("opus", 24000, 480, 156, 1)

    @pytest.mark.parametrize("codec", ["opus", "ogg_opus"])
    @pytest.mark.parametrize(("asked", "sent"), [(22050, 24000), (44100, 48000)])
    def test_opus_at_a_rate_it_does_not_have_is_sent_at_the_next_above(self, asked, sent, codec):
        assert choose_format(codec, asked, 20, 24000) == choose_format(codec, sent, 20, 24000)

    @pytest.mark.parametrize("codec", ["pcm_s16le", "wav"])
    @pytest.mark.parametrize("rate", SAMPLE_RATES)
    def test_pcm_is_sent_at_the_very_rate_that_was_asked_for(self, rate, codec):
        chosen = choose_format(codec, rate, 20, 24000)
        assert (chosen.sample_rate, chosen.frame_samples, chosen.pre_skip) == (rate, rate // 50, 0)

    @pytest.mark.parametrize("codec", ["mulaw", "alaw"])
    @pytest.mark.parametrize("rate", SAMPLE_RATES)
    def test_g711_is_sent_at_8_khz_whatever_was_asked_for(self, rate, codec):
        assert choose_format(codec, rate, 20, 24000) == Format(codec, 8000, 160, 0)

    @pytest.mark.parametrize("rate", SAMPLE_RATES)
    def test_mp3_and_flac_have_the_rate_that_was_asked_for_and_frames_of_their_own(self, rate):
        assert choose_format("mp3", rate, 20, 24000) == Format("mp3", rate, 1152 if rate >= 32000 else 576, 1105)
        assert choose_format("flac", rate, 20, 24000) == Format("flac", rate, 4096, 0)

    def test_ogg_tells_its_decoder_itself_what_to_drop(self):
        assert choose_format("ogg_opus", 24000, 20, 24000) == Format("ogg_opus", 24000, 480, 0)

    def test_flac_is_the_one_codec_that_is_not_of_the_wire(self):
        assert set(CODECS) - set(WIRE_CODECS) == {"flac"}

    def test_every_codec_has_a_media_type(self):
        types = {codec: choose_format(codec, 24000, 20, 24000).media_type for codec in CODECS}
        assert (types["ogg_opus"], types["mp3"], types["wav"]) == ("audio/ogg; codecs=opus", "audio/mpeg", "audio/wav")
        assert len(set(types.values())) == len(CODECS)

    @pytest.mark.parametrize(("codec", "rate", "frame_ms"), [f for f in EVERY_FORMAT if f[0] not in OWN_FRAMES])
    def test_a_frame_is_the_nearest_whole_number_of_samples(self, codec, rate, frame_ms):
        chosen = choose_format(codec, rate, frame_ms, 24000)
        assert abs(chosen.frame_samples - chosen.sample_rate * frame_ms / 1000) <= 0.5

    @pytest.mark.parametrize("codec", ["aac", "ogg", "pcm", "OPUS", ""])
    def test_a_codec_we_do_not_have_is_refused_naming_those_we_have(self, codec):
        with pytest.raises(UnsupportedCodec, match="opus, ogg_opus, pcm_s16le, mulaw, alaw, wav, mp3, flac"):
            choose_format(codec, 24000, 20, 24000)

    @pytest.mark.parametrize("rate", [0, -8000, 11025, 12000, 96000])
    def test_a_rate_off_the_list_is_refused_naming_the_list(self, rate):
        with pytest.raises(UnsupportedCodec, match="8000, 16000, 22050, 24000, 32000, 44100, 48000"):
            choose_format("opus", rate, 20, 24000)

    @pytest.mark.parametrize("frame_ms", [0, -20, 1, 21, 30, 140, float("nan"), float("inf")])
    @pytest.mark.parametrize("codec", CODECS)
    def test_a_frame_length_off_the_list_is_refused_naming_the_list(self, codec, frame_ms):
        with pytest.raises(UnsupportedCodec, match=r"2\.5, 5, 10, 20, 40, 60, 80, 100, 120"):
            choose_format(codec, 24000, frame_ms, 24000)

    def test_a_voice_without_a_sample_rate_is_an_error_of_ours(self):
        with pytest.raises(ValueError, match="source_rate 0"):
            choose_format("opus", 24000, 20, 0)


class TestAccounting:
    @settings(deadline=None, max_examples=200)
    @given(format=formats, samples=lengths, data=st.data())
    def test_any_cutting_gives_the_same_packets_as_one_push(self, format, samples, data):
        assume(format.codec != "ogg_opus")  # one page a push, at least
        cuts = data.draw(st.lists(st.integers(0, samples), max_size=12))
        assert packetized(format, noise(samples), cuts) == packetized(format, noise(samples))

    @settings(deadline=None, max_examples=200)
    @given(format=formats, samples=lengths)
    def test_packets_are_gapless_from_zero_to_the_end_and_begin_where_the_formula_says(self, format, samples):
        assume(format.codec != "ogg_opus")
        packets, length = packetized(format, noise(samples))
        assert length == resampled_length(samples, SOURCE, format.sample_rate)
        starts = [min(length, max(0, k * format.frame_samples - format.pre_skip)) for k in range(len(packets))]
        assert [packet.start for packet in packets] == starts
        assert [packet.end for packet in packets] == [*starts[1:], length][: len(packets)]

    @settings(deadline=None, max_examples=100)
    @given(rate=st.sampled_from(SAMPLE_RATES), frame_ms=st.sampled_from(FRAME_MS), samples=lengths, data=st.data())
    def test_pages_are_gapless_the_first_holds_one_packet_and_none_much(self, rate, frame_ms, samples, data):
        format = choose_format("ogg_opus", rate, frame_ms, SOURCE)
        cuts = data.draw(st.lists(st.integers(0, samples), max_size=12))
        packets, length = packetized(format, noise(samples), cuts)
        assert [packet.start for packet in packets] == [0, *[packet.end for packet in packets]][:-1]
        assert packets[-1].end == length == resampled_length(samples, SOURCE, format.sample_rate)
        most = max(PAGE_SECONDS * format.sample_rate, format.frame_samples)
        assert packets[0].end <= format.frame_samples
        assert max(packet.end - packet.start for packet in packets) <= most

    @settings(deadline=None, max_examples=200)
    @given(format=wire_formats, samples=lengths, per_message=st.integers(1, 7), data=st.data())
    def test_a_listener_gets_exactly_as_many_samples_as_were_pushed(self, format, samples, per_message, data):
        cuts = data.draw(st.lists(st.integers(0, samples), max_size=6))
        packets, length = packetized(format, noise(samples), cuts)
        assert len(heard(format, packets, length, per_message)) == length

    @pytest.mark.parametrize(("codec", "rate", "frame_ms"), EVERY_FORMAT)
    def test_every_format_is_exact_for_short_sounds(self, codec, rate, frame_ms):
        format = choose_format(codec, rate, frame_ms, SOURCE)
        for samples in (0, 1, 59, 157, 4801):
            packets, length = packetized(format, noise(samples))
            assert len(heard(format, packets, length)) == length

    @settings(deadline=None, max_examples=100)
    @given(format=formats, samples=lengths)
    def test_no_packet_is_sent_that_holds_nothing_but_padding(self, format, samples):
        packets, length = packetized(format, noise(samples))
        assume(packets and length)
        assert packets[-1].start < length or (format.codec == "mp3" and len(packets) == 2)

    @pytest.mark.parametrize("codec", BARE)
    def test_silence_of_no_length_is_no_packets(self, codec):
        assert packetized(choose_format(codec, 24000, 20, 24000), noise(0)) == ([], 0)

    @pytest.mark.parametrize("codec", [codec for codec in CODECS if codec not in BARE])
    def test_a_file_of_no_length_is_one_all_the_same(self, codec):
        format = choose_format(codec, 24000, 20, 24000)
        packets, length = packetized(format, noise(0))
        assert [(packet.start, packet.end) for packet in packets] == [(0, 0)] * (2 if codec == "mp3" else 1)
        assert length == 0
        assert len(played(codec, pack_audio(format, packets))) == (2 * 576 if codec == "mp3" else 0)

    @pytest.mark.parametrize("codec", [codec for codec in CODECS if codec not in BARE])
    def test_headers_come_once_with_the_first_audio_and_never_before_it(self, codec):
        format = choose_format(codec, 16000, 20, 24000)
        packetizer = Packetizer(format, 24000)
        assert packetizer.push(noise(10)) == []
        packets = packetizer.push(noise(24000)) + packetizer.finish()
        magic = {"wav": b"RIFF", "ogg_opus": b"OggS", "flac": b"fLaC", "mp3": b"\xff\xf3"}[codec]
        once = {"wav": b"RIFF", "ogg_opus": b"OpusHead", "flac": b"fLaC", "mp3": packets[0].payload}[codec]
        assert packets[0].payload.startswith(magic)
        assert packets[0].end > 0 or codec == "mp3"  # whose first frames hold its delay
        assert pack_audio(format, packets).count(once) == 1

    def test_one_sample_of_opus_is_one_packet(self):
        packets, length = packetized(choose_format("opus", 24000, 20, 24000), noise(1))
        assert [(packet.start, packet.end) for packet in packets] == [(0, 1)]
        assert length == 1

    def test_a_last_frame_too_short_for_the_look_ahead_brings_one_packet_more(self):
        format = choose_format("opus", 24000, 20, 24000)
        assert [len(packetized(format, noise(n))[0]) for n in (480 - 156, 480 - 155, 480)] == [1, 2, 2]

    def test_packets_shorter_than_the_look_ahead_begin_and_end_at_zero(self):
        packets, _ = packetized(choose_format("opus", 24000, 2.5, 24000), noise(240))
        assert [(p.start, p.end) for p in packets] == [
            (0, 0),
            (0, 0),
            (0, 24),
            (24, 84),
            (84, 144),
            (144, 204),
            (204, 240),
        ]

    def test_a_starving_stream_gets_every_whole_frame_and_keeps_the_rest(self):
        packetizer = Packetizer(choose_format("opus", 24000, 20, 24000), 24000)
        assert len(packetizer.push(noise(1000))) == 2
        assert packetizer.samples == 1000
        assert len(packetizer.push(noise(440))) == 1

    def test_a_second_finish_adds_nothing(self):
        for codec, rate in itertools.product(CODECS, (16000, 24000)):
            packetizer = Packetizer(choose_format(codec, rate, 20, 24000), 24000)
            packetizer.push(noise(1000))
            packetizer.finish()
            assert packetizer.finish() == []

    def test_a_push_after_the_end_is_an_error(self):
        packetizer = Packetizer(choose_format("opus", 24000, 20, 24000), 24000)
        packetizer.finish()
        with pytest.raises(RuntimeError, match="after finish"):
            packetizer.push(noise(10))


class TestSound:
    @settings(deadline=None, max_examples=60)
    @given(rate=st.sampled_from(SAMPLE_RATES), frame_ms=st.sampled_from(FRAME_MS), samples=lengths)
    def test_pcm_without_resampling_is_the_source_to_the_bit(self, rate, frame_ms, samples):
        format = choose_format("pcm_s16le", rate, frame_ms, rate)
        packets, length = packetized(format, noise(samples), source=rate)
        assert np.array_equal(heard(format, packets, length), noise(samples))

    def test_pcm_travels_little_endian(self):
        format = choose_format("pcm_s16le", 24000, 20, 24000)
        packets, _ = packetized(format, np.array([1, -2], np.int16))
        assert packets == [Packet(b"\x01\x00\xfe\xff", 0, 2)]

    @settings(deadline=None, max_examples=60)
    @given(codec=st.sampled_from(EXACT), rate=st.sampled_from(SAMPLE_RATES), samples=lengths, data=st.data())
    def test_what_loses_nothing_is_the_same_to_the_bit_in_each(self, codec, rate, samples, data):
        cuts = data.draw(st.lists(st.integers(0, samples), max_size=6))
        plain, format = choose_format("pcm_s16le", rate, 20, SOURCE), choose_format(codec, rate, 20, SOURCE)
        expected = heard(plain, *packetized(plain, noise(samples)))
        assert np.array_equal(heard(format, *packetized(format, noise(samples), cuts)), expected)

    @pytest.mark.parametrize("source", [22050, 24000, 48000])
    @pytest.mark.parametrize(("codec", "rate"), list(itertools.product(CODECS, SAMPLE_RATES)))
    def test_a_tone_keeps_its_pitch_its_length_its_place_and_its_level(self, codec, rate, source):
        format = choose_format(codec, rate, 20, source)
        packets, length = packetized(format, tone(2 * source, source), source=source)
        sound = heard(format, packets, length)
        assert length == len(sound) == 2 * format.sample_rate
        hertz, late, level = fitted(sound, format.sample_rate)
        assert hertz == pytest.approx(440, abs=0.002)
        assert late * format.sample_rate == pytest.approx(0, abs=0.2)  # samples
        assert level == pytest.approx(11400 if codec == "mp3" else 12000, rel=0.02)

    @pytest.mark.parametrize(("codec", "seconds"), list(itertools.product(PLAYERS, (0.3, 3))))
    @pytest.mark.parametrize("rate", SAMPLE_RATES)
    def test_a_tone_is_as_long_and_as_high_for_players_that_know_nothing_of_us(self, codec, seconds, rate):
        format = choose_format(codec, rate, 20, SOURCE)
        packets, length = packetized(format, tone(round(seconds * SOURCE), SOURCE), range(0, SOURCE, 1777))
        sound, actual = played(codec, pack_audio(format, packets)), format.sample_rate
        if codec == "ogg_opus":
            actual = 48000
        if codec == "mp3":
            assert length + format.pre_skip <= len(sound) < length + format.pre_skip + format.frame_samples
            sound = sound[format.pre_skip : format.pre_skip + length]
        assert len(sound) == round(seconds * actual)
        hertz, late, _ = fitted(sound, actual)
        assert hertz == pytest.approx(440, abs=0.1 if seconds < 1 else 0.002)
        assert late * actual == pytest.approx(0, abs=0.5)

    @pytest.mark.parametrize("frame_ms", FRAME_MS)
    @pytest.mark.parametrize("rate", [8000, 16000, 24000, 48000])
    def test_decoded_opus_is_aligned_with_the_source_to_the_sample(self, rate, frame_ms):
        source = speechlike(1.0, rate)
        format = choose_format("opus", rate, frame_ms, rate)
        packets, length = packetized(format, source, source=rate)
        assert abs(lag(heard(format, packets, length), source)) <= 1

    @pytest.mark.parametrize("source", [22050, 24000, 48000])
    @pytest.mark.parametrize(("codec", "rate"), list(itertools.product(CODECS, SAMPLE_RATES)))
    def test_resampling_shifts_nothing(self, codec, rate, source):
        format = choose_format(codec, rate, 20, source)
        packets, length = packetized(format, speechlike(1.0, source), source=source)
        decoded = heard(format, packets, length)
        assert abs(lag(decoded, speechlike(1.0, format.sample_rate))) <= (codec in ("opus", "ogg_opus"))


class TestPayloads:
    @pytest.mark.parametrize(("codec", "rate"), list(itertools.product(PLAYERS, SAMPLE_RATES)))
    def test_a_file_says_the_rate_it_has(self, codec, rate, tmp_path):
        format = choose_format(codec, rate, 20, SOURCE)
        path = tmp_path / "x"
        path.write_bytes(pack_audio(format, packetized(format, noise(SOURCE))[0]))
        probe = ["ffprobe", "-v", "error", "-of", "csv=p=0", "-show_entries", "stream=sample_rate,channels", path]
        stated = 48000 if codec == "ogg_opus" else format.sample_rate
        assert subprocess.check_output(probe, text=True).strip() == f"{stated},1"

    @settings(deadline=None, max_examples=60)
    @given(codec=st.sampled_from(["pcm_s16le", "wav"]), samples=lengths, rate=st.sampled_from(SAMPLE_RATES))
    def test_no_payload_ends_inside_a_sample(self, codec, samples, rate):
        packets, _ = packetized(choose_format(codec, rate, 2.5, SOURCE), noise(samples), range(1, samples, 333))
        assert [packet for packet in packets if len(packet.payload) % 2] == []

    def test_each_opus_packet_is_behind_its_length_in_network_order(self):
        format = choose_format("opus", 24000, 20, 24000)
        packets = [Packet(b"abc", 0, 1), Packet(b"", 1, 2), Packet(b"x" * 258, 2, 3)]
        assert pack_audio(format, packets) == b"\x00\x03abc\x00\x00\x01\x02" + b"x" * 258

    def test_pcm_packets_are_joined(self):
        format = choose_format("pcm_s16le", 24000, 20, 24000)
        assert pack_audio(format, [Packet(b"ab", 0, 1), Packet(b"cd", 1, 2)]) == b"abcd"

    def test_a_payload_cut_short_is_refused(self):
        decoder = StreamDecoder(choose_format("opus", 24000, 20, 24000))
        with pytest.raises(ValueError, match="a packet of 9 bytes, but 2 are left"):
            decoder.push(b"\x00\x09ab")

    @pytest.mark.parametrize("samples", [-1, 479, 961])
    def test_a_length_that_cannot_be_is_refused(self, samples):
        decoder = StreamDecoder(choose_format("pcm_s16le", 24000, 20, 24000))
        decoder.push(bytes(2 * 960))
        with pytest.raises(ValueError, match="480 to 960 were decoded"):
            decoder.finish(samples)


def fitted(sound, rate, expected=440.0):
    """Frequency, lateness in seconds and amplitude of the tone in the middle of `sound`, by how its phase turns."""
    edge = min(len(sound) // 6, rate // 4)
    middle = sound[edge : len(sound) - edge].astype(float)
    time = (np.arange(len(middle)) + edge) / rate
    turned = 2j * middle * np.exp(-2j * np.pi * expected * time)
    half = len(middle) // 2
    window = np.hanning(half)
    early, later = (np.sum(part * window) / np.sum(window) for part in (turned[:half], turned[-half:]))
    apart = (len(middle) - half) / rate
    hertz = expected + np.angle(later / early) / (2 * np.pi * apart)
    return hertz, -np.angle(early + later) / (2 * np.pi * expected), abs(early + later) / 2


def lag(sound, source):
    """By how many samples `sound` comes later than `source`."""
    size = len(sound) + len(source)
    product = np.fft.irfft(np.fft.rfft(sound, size) * np.conj(np.fft.rfft(source, size)), size)
    best = int(np.argmax(product))
    return best if best < size // 2 else best - size


@pytest.mark.parametrize("codec", ["opus", "ogg_opus"])
@pytest.mark.parametrize("rate", [8000, 24000, 48000])
def test_economy_is_fewer_bits_and_every_sample(codec: str, rate: int):
    pcm = (9000 * np.sin(np.arange(24000) * 2 * np.pi * 440 / 24000)).astype(np.int16)
    sizes = {}
    for economy in (False, True):
        form = choose_format(codec, rate, 20, 24000, economy=economy)
        packetizer, decoder = Packetizer(form, 24000), StreamDecoder(form)
        packets = packetizer.push(pcm) + packetizer.finish()
        decoded = np.concatenate([decoder.push(pack_audio(form, packets)), decoder.finish(packetizer.samples)])
        assert len(decoded) == rate
        assert np.abs(decoded[rate // 4 : -rate // 4].astype(int)).max() > 7000
        sizes[economy] = sum(len(packet.payload) for packet in packets)
    assert sizes[True] <= sizes[False]
