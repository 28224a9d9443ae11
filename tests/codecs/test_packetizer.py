import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from voxgate.codecs.packetizer import (
    CODECS,
    FRAME_MS,
    SAMPLE_RATES,
    Format,
    Packet,
    Packetizer,
    StreamDecoder,
    UnsupportedCodec,
    choose_format,
    pack_audio,
)
from voxgate.codecs.resample import resampled_length

EVERY_FORMAT = list(itertools.product(CODECS, SAMPLE_RATES, FRAME_MS))
SOURCE = 24000

formats = st.builds(choose_format, *map(st.sampled_from, (CODECS, SAMPLE_RATES, FRAME_MS)), st.just(SOURCE))
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
    decoder = StreamDecoder(format)
    messages = [packets[at : at + per_message] for at in range(0, len(packets), per_message)]
    pieces = [decoder.push(pack_audio(format, message)) for message in messages]
    return np.concatenate([*pieces, decoder.finish(samples)])


class TestChoosingAFormat:
    def test_the_default_is_opus_in_frames_of_20_ms(self):
        assert choose_format("opus", 24000, 20, 24000) == Format("opus", 24000, 480, 156, 1)

    @pytest.mark.parametrize(("asked", "sent"), [(22050, 24000), (44100, 48000)])
    def test_opus_at_a_rate_it_does_not_have_is_sent_at_the_next_above(self, asked, sent):
        assert choose_format("opus", asked, 20, 24000) == choose_format("opus", sent, 20, 24000)

    @pytest.mark.parametrize("rate", SAMPLE_RATES)
    def test_pcm_is_sent_at_the_very_rate_that_was_asked_for(self, rate):
        chosen = choose_format("pcm_s16le", rate, 20, 24000)
        assert (chosen.sample_rate, chosen.frame_samples, chosen.pre_skip) == (rate, rate // 50, 0)

    @pytest.mark.parametrize(("codec", "rate", "frame_ms"), EVERY_FORMAT)
    def test_a_frame_is_the_nearest_whole_number_of_samples(self, codec, rate, frame_ms):
        chosen = choose_format(codec, rate, frame_ms, 24000)
        assert abs(chosen.frame_samples - chosen.sample_rate * frame_ms / 1000) <= 0.5

    @pytest.mark.parametrize("codec", ["ogg_opus", "mulaw", "alaw", "wav", "mp3", "OPUS", ""])
    def test_a_codec_we_do_not_have_is_refused_naming_those_we_have(self, codec):
        with pytest.raises(UnsupportedCodec, match="opus, pcm_s16le"):
            choose_format(codec, 24000, 20, 24000)

    @pytest.mark.parametrize("rate", [0, -8000, 11025, 12000, 32000, 96000])
    def test_a_rate_off_the_list_is_refused_naming_the_list(self, rate):
        with pytest.raises(UnsupportedCodec, match="8000, 16000, 22050, 24000, 44100, 48000"):
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
    @settings(deadline=None, max_examples=150)
    @given(format=formats, samples=lengths, data=st.data())
    def test_any_cutting_gives_the_same_packets_as_one_push(self, format, samples, data):
        cuts = data.draw(st.lists(st.integers(0, samples), max_size=12))
        assert packetized(format, noise(samples), cuts) == packetized(format, noise(samples))

    @settings(deadline=None, max_examples=150)
    @given(format=formats, samples=lengths)
    def test_packets_are_gapless_from_zero_to_the_end_and_begin_where_the_formula_says(self, format, samples):
        packets, length = packetized(format, noise(samples))
        assert length == resampled_length(samples, SOURCE, format.sample_rate)
        starts = [max(0, k * format.frame_samples - format.pre_skip) for k in range(len(packets))]
        assert [packet.start for packet in packets] == starts
        assert [packet.end for packet in packets] == [*starts[1:], length][: len(packets)]

    @settings(deadline=None, max_examples=150)
    @given(format=formats, samples=lengths, per_message=st.integers(1, 7))
    def test_a_listener_gets_exactly_as_many_samples_as_were_pushed(self, format, samples, per_message):
        packets, length = packetized(format, noise(samples))
        assert len(heard(format, packets, length, per_message)) == length

    @pytest.mark.parametrize(("codec", "rate", "frame_ms"), EVERY_FORMAT)
    @pytest.mark.parametrize("samples", [0, 1, 59, 157, 4801])
    def test_every_format_is_exact_for_short_sounds(self, codec, rate, frame_ms, samples):
        format = choose_format(codec, rate, frame_ms, SOURCE)
        packets, length = packetized(format, noise(samples))
        assert len(heard(format, packets, length)) == length

    @settings(deadline=None, max_examples=60)
    @given(format=formats, samples=lengths)
    def test_no_packet_is_sent_that_holds_nothing_but_padding(self, format, samples):
        packets, length = packetized(format, noise(samples))
        assume(packets)
        assert packets[-1].start < length

    @pytest.mark.parametrize("codec", CODECS)
    def test_silence_of_no_length_is_no_packets(self, codec):
        assert packetized(choose_format(codec, 24000, 20, 24000), noise(0)) == ([], 0)

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

    @pytest.mark.parametrize("source", [22050, 24000, 48000])
    @pytest.mark.parametrize(("codec", "rate"), list(itertools.product(CODECS, SAMPLE_RATES)))
    def test_a_tone_keeps_its_pitch_its_length_and_its_level(self, codec, rate, source):
        format = choose_format(codec, rate, 20, source)
        packets, length = packetized(format, tone(2 * source, source), source=source)
        sound = heard(format, packets, length) / 12000
        assert length == 2 * format.sample_rate
        middle = sound[format.sample_rate // 2 : -format.sample_rate // 2]  # one second: 1 Hz a bin
        spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
        assert np.argmax(spectrum) == 440
        assert np.sqrt(np.mean(middle**2)) == pytest.approx(np.sqrt(0.5), rel=0.05)

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
        assert abs(lag(heard(format, packets, length), speechlike(1.0, format.sample_rate))) <= (codec == "opus")


class TestPayloads:
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


def lag(sound, source):
    """By how many samples `sound` comes later than `source`."""
    size = len(sound) + len(source)
    product = np.fft.irfft(np.fft.rfft(sound, size) * np.conj(np.fft.rfft(source, size)), size)
    best = int(np.argmax(product))
    return best if best < size // 2 else best - size
