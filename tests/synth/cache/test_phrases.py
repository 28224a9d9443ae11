from pathlib import Path

import pytest

from voxgate.synth.cache.phrases import MOST_PHRASES, Phrase, PhrasesError, load, segments
from voxgate.synth.segment import Boundary
from voxgate.synth.text.segmenter import Segmenter

LATIN = ("Latin",)
START, SENTENCE, CLAUSE = Boundary.START, Boundary.SENTENCE, Boundary.CLAUSE
FORCED, END = Boundary.FORCED, Boundary.END
LONG = "If you would like to hear that again, just say so, and otherwise I will go on with the next of your messages."


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "phrases.toml"
    path.write_text(text)
    return path


def test_phrases_are_read_with_their_defaults(tmp_path: Path):
    read = load(
        file(tmp_path, '[[phrase]]\ntext = "Yes."\n[[phrase]]\ntext = "No."\nvoice = "v"\nspeed = 1.5\nseed = 3')
    )

    assert read == (Phrase(text="Yes."), Phrase(text="No.", voice="v", speed=1.5, seed=3))


def test_an_empty_file_holds_none(tmp_path: Path):
    assert load(file(tmp_path, "")) == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[[phrase]", "phrases.toml"),
        ("[[phrases]]", "phrases"),
        ("[[phrase]]", "text"),
        ('[[phrase]]\ntext = ""', "text"),
        ('[[phrase]]\ntext = "Yes."\nvolume = 2', "volume"),
        ('[[phrase]]\ntext = "Yes."\nspeed = 9', "speed"),
        ('[[phrase]]\ntext = "Yes."\nseed = -1', "seed"),
        ('[[phrase]]\ntext = "..."', "nothing to speak"),
        ('[[phrase]]\ntext = "Yes."\n' * (MOST_PHRASES + 1), str(MOST_PHRASES)),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, text: str, named: str):
    with pytest.raises(PhrasesError, match=named):
        load(file(tmp_path, text))


def test_a_missing_file_is_refused_by_name(tmp_path: Path):
    with pytest.raises(PhrasesError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")


def between(text: str) -> set[tuple[str, Boundary, Boundary]]:
    return {(" ".join(each.text.split()), each.before, each.after) for each in segments(text, LATIN)}


def test_a_sentence_is_another_one_at_the_start_at_the_end_and_in_the_middle():
    text = "One moment, please."

    assert between(text) == {(text, before, after) for before in (START, SENTENCE) for after in (SENTENCE, END)}


def test_what_has_no_full_stop_can_only_be_ended_or_flushed():
    text = "One moment"

    assert between(text) == {(text, before, after) for before in (START, SENTENCE) for after in (FORCED, END)}


def test_a_phrase_of_two_sentences_is_both_of_them():
    assert {(text, before) for text, before, _ in between("Hello! How are you?")} == {
        ("Hello!", START),
        ("Hello!", SENTENCE),
        ("How are you?", SENTENCE),
    }


def test_a_long_sentence_is_cut_early_only_where_it_comes_first():
    cut = segments(LONG, LATIN)

    assert {each.before for each in cut if each.after is CLAUSE} >= {START}
    assert any(" ".join(each.text.split()) == LONG and each.before is SENTENCE for each in cut)


@pytest.mark.parametrize("text", ["One moment, please.", "Hello! How are you?", LONG, "Yes?\nNo."])
@pytest.mark.parametrize("before", ["", "It rained all day. ", "Really? "])
@pytest.mark.parametrize("after", ["", " It rained all night."])
@pytest.mark.parametrize("flushed", [False, True])
def test_contexts_find_every_part_of_a_phrase(text: str, before: str, after: str, flushed: bool):
    segmenter = Segmenter(LATIN)
    cut = segmenter.push(before) + (segmenter.flush() if flushed else [])
    for character in text + after:
        cut += segmenter.push(character)
    cut += segmenter.end()
    end = len(before) + len(text)

    def name(each):
        return (" ".join(each.text.split()), each.before, each.after, " ".join(each.lead_in.split()))

    said = {name(each) for each in cut if each.start < end and each.end > len(before)}
    assert said <= {name(each) for each in segments(text, LATIN)}


def test_a_phrase_in_a_script_the_voice_lacks_has_no_segments():
    assert segments("Привет.", LATIN) == []
