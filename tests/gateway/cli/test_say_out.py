import asyncio
import wave

import pytest

from voxgate.gateway.cli.say_out import File, Recording, choose_out


@pytest.mark.parametrize(
    ("path", "codec", "kind", "takes"),
    [
        ("x.wav", None, File, None),
        ("x.WAV", "opus", File, None),
        ("x.flac", "mulaw", File, None),
        ("x.pcm", "mp3", File, None),
        ("-", None, File, None),
        ("x.ogg", None, Recording, "ogg_opus"),
        ("x.opus", "ogg_opus", Recording, "ogg_opus"),
        ("x.mp3", "mp3", Recording, "mp3"),
    ],
)
def test_the_name_of_a_file_says_what_goes_into_it(path, codec, kind, takes):
    out = choose_out(path, play=False, codec=codec)
    assert (type(out), out.codec) == (kind, takes)


@pytest.mark.parametrize(
    ("path", "codec", "reason"),
    [
        ("x.aac", None, ".wav, .flac, .pcm, .ogg, .opus, .mp3, or -"),
        ("wav", None, "cannot tell the format"),
        ("x.mp3", "opus", "takes --codec mp3 as it comes, not opus"),
        ("x.ogg", "opus", "takes --codec ogg_opus"),
    ],
)
def test_what_cannot_be_written_is_refused(path, codec, reason):
    with pytest.raises(ValueError, match=reason):
        choose_out(path, play=False, codec=codec)


def written(out, pieces, samples):
    async def write():
        await out.open(16000)
        for piece in pieces:
            await out.write(piece)
        await out.close(samples)
        await out.close(samples)

    asyncio.run(write())


@pytest.mark.parametrize("samples", [0, 1, 5000, 9999])
def test_what_a_decoder_gave_too_much_is_cut_off(samples, tmp_path):
    path = tmp_path / "x.wav"
    written(File(str(path), ".wav"), [bytes(2 * samples), b"\1\2" * 480], samples)
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnframes()) == (16000, samples)
        assert not any(file.readframes(samples))


def test_a_context_that_broke_off_keeps_all_that_came(tmp_path):
    path = tmp_path / "x.pcm"
    written(File(str(path), ".pcm"), [b"\1\2" * 100] * 3, None)
    assert path.read_bytes() == b"\1\2" * 300


def test_a_recording_is_what_came_whatever_its_length(tmp_path):
    path = tmp_path / "x.mp3"
    written(Recording(str(path), "mp3"), [b"odd", b"", b" bytes"], 1)
    assert path.read_bytes() == b"odd bytes"


@pytest.mark.parametrize("codec", [None, "opus"])
def test_a_way_out_that_was_never_opened_makes_no_file(codec, tmp_path):
    asyncio.run(choose_out(str(tmp_path / "x.wav"), play=False, codec=codec).close(None))
    assert list(tmp_path.iterdir()) == []
