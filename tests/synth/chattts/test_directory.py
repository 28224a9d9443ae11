import numpy as np
import pytest

from tiny_chattts import write_directory
from voxgate.synth.chattts import layout
from voxgate.synth.chattts.base16384 import encode
from voxgate.synth.chattts.directory import (
    MANIFEST,
    SPEAKERS,
    STATISTICS,
    Manifest,
    read_manifest,
    stamp,
    voices,
    write_manifest,
)
from voxgate.synth.chattts.errors import SpeakerError, WeightsError
from voxgate.synth.chattts.lookahead import LookAhead
from voxgate.synth.chattts.speaker import to_string

WIDTH = 32


@pytest.fixture
def folder(tmp_path):
    folder = write_directory(tmp_path / "chattts")
    write_manifest(folder, Manifest(stamp(folder), LookAhead(4, 12), {4: 26.5, 12: 41.0}))
    return folder


def test_a_manifest_is_read_as_it_was_written(folder):
    manifest = read_manifest(folder)

    assert manifest == Manifest(stamp(folder), LookAhead(4, 12), {4: 26.5, 12: 41.0})
    assert manifest.revision != Manifest(manifest.files, LookAhead(4, 13), manifest.curve).revision


def test_a_directory_that_was_not_imported_is_refused(folder):
    (folder / MANIFEST).unlink()
    with pytest.raises(WeightsError, match="has not been imported: run `voxgate engine import chattts"):
        read_manifest(folder)

    (folder / MANIFEST).write_text('{"files": 3}')
    with pytest.raises(WeightsError, match="cannot be read"):
        read_manifest(folder)


def test_files_that_changed_since_the_import_are_named(folder):
    (folder / layout.EMBED).write_bytes(b"other")
    (folder / layout.GPT).unlink()
    with pytest.raises(WeightsError) as caught:
        read_manifest(folder)

    assert caught.value.problems[0] == "gpt/model.safetensors is missing"
    assert caught.value.problems[1].startswith("Embed.safetensors has changed since it was imported")
    assert len(caught.value.problems) == 2


def test_every_speaker_file_is_a_voice(folder):
    assert voices(folder, WIDTH) == {"chattts": None}

    (folder / SPEAKERS).mkdir()
    for name, level in (("mei", 1.0), ("bob", 2.0)):
        (folder / SPEAKERS / f"{name}.txt").write_text(to_string(np.full(WIDTH, level)))
    found = voices(folder, WIDTH)
    assert list(found) == ["bob", "mei"]
    assert np.array_equal(found["mei"], np.ones(WIDTH))


def test_random_voices_need_statistics(folder):
    with pytest.raises(SpeakerError, match=STATISTICS):
        voices(folder, WIDTH, random=(7,))

    (folder / STATISTICS).write_text(encode(np.ones(2 * WIDTH, np.float16).tobytes()))
    assert list(voices(folder, WIDTH, random=(7, 8))) == ["chattts-7", "chattts-8"]


@pytest.mark.parametrize(("name", "content"), [("Big Name", to_string(np.ones(WIDTH))), ("mei", "hello")])
def test_a_speaker_file_that_is_none_is_named(folder, name, content):
    (folder / SPEAKERS).mkdir()
    (folder / SPEAKERS / f"{name}.txt").write_text(content)

    with pytest.raises(SpeakerError, match=f"{name}.txt"):
        voices(folder, WIDTH)
