import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from running import eventually
from voxgate.gateway.pronunciation import Pronunciation
from voxgate.synth.segment import Boundary, Segment
from voxgate.synth.text.lexicon import Lexicon, LexiconError

SEGMENT = Segment(0, "Ask voxgate.", 0, 12, Boundary.START, Boundary.END)


def said(lexicon: Lexicon) -> list[str]:
    return [mark.value for mark in lexicon.apply(SEGMENT, "heart", "en-US").marks]


async def test_words_follow_the_file_and_a_broken_one_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "voxgate.lexicon")
    file = tmp_path / "lexicon.toml"
    file.write_text('[[word]]\ntext = "voxgate"\nsay = "vox gate"\n')
    pronunciation, house = Pronunciation(file), SimpleNamespace(lexicon=Lexicon())
    following = asyncio.create_task(pronunciation.follow(house, 0.01))  # pyright: ignore[reportArgumentType]
    await eventually("the words", lambda: said(house.lexicon) == ["vox gate"])
    file.write_text('[[word]]\ntext = "voxgate"\n')
    await eventually("a complaint", lambda: "stays as it was" in caplog.text)
    assert said(house.lexicon) == ["vox gate"]
    file.write_text('[[word]]\ntext = "voxgate"\nsay = "box gate"\n')
    await eventually("other words", lambda: said(house.lexicon) == ["box gate"])
    following.cancel()


def test_without_a_file_words_are_as_they_are(tmp_path: Path):
    assert said(Pronunciation(None).lexicon) == []
    with pytest.raises(LexiconError):
        Pronunciation(tmp_path / "none.toml")
