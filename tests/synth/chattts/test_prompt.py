import pytest
from tokenizers import Tokenizer

from tiny_chattts import write_tokenizer
from voxgate.synth.chattts.errors import WeightsError
from voxgate.synth.chattts.prompt import Prompter, speakable, written_out
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.segment import Mark, MarkKind


@pytest.fixture
def prompter(tmp_path) -> Prompter:
    (tmp_path / "tokenizer").mkdir()
    write_tokenizer(tmp_path / "tokenizer" / "tokenizer.json")
    return Prompter.read(tmp_path, TINY.text_vocabulary)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Hello, world!", "Hello, world."),
        ("你好！吃了吗？", "你好。 吃了吗。"),
        ("Really?! Yes…", "Really. Yes."),
        ("a (big) one: this", "a, big, one, this"),
        ("don't—stop", "dont, stop"),
        ("café naïve", "cafe naive"),
        ("かな 😀 漢字", "漢字"),
        ("...", ""),
    ],
)
def test_text_becomes_the_characters_the_model_knows(text, spoken):
    assert speakable(text) == spoken


def test_numbers_are_read_in_the_language_they_stand_in():
    assert written_out("It costs $5.") == "It costs five dollars."
    assert not set("0123456789") & set(written_out("我有3只猫"))
    assert "三" in written_out("我有3只猫")


def test_control_tags_are_spoken_as_such_only_where_they_are_allowed():
    text = "Well [laugh] no [uv_break] yes"

    assert written_out(text, tags=True) == text
    assert written_out(text) == "Well no yes"


def test_no_other_token_can_be_written_in_a_text():
    assert written_out("so [sic] it [Stts] is", tags=True) == "so sic it Stts is"


def test_a_bracket_that_is_never_closed_swallows_nothing():
    assert written_out("Well [uv_ and on", tags=True) == "Well uv and on"


def test_a_tag_alone_is_nothing_to_speak():
    assert written_out("[laugh] ...", tags=True) == ""


def test_marks_hold_their_place_between_tags():
    text = "see [laugh] Dr here"
    mark = Mark(12, 14, MarkKind.ALIAS, "doctor")

    assert written_out(text, [mark], tags=True) == "see [laugh] doctor here"


def test_a_prompt_is_the_text_between_its_control_tokens(prompter):
    controls = prompter.controls
    ids = prompter.ids("hi [laugh]", speaker=True, speed=1.0)

    assert ids[:3] == (controls.start, controls.speaker, controls.speeds[5])
    assert ids[-1] == controls.end
    assert len(ids) == 7  # h, ##i and the tag besides
    assert prompter.ids("hi", speaker=False, speed=1.0)[1] == controls.no_speaker


def test_speed_is_one_of_ten_levels(prompter):
    levels = [
        prompter.controls.speeds.index(prompter.ids("a", speaker=False, speed=s)[2]) for s in (0.25, 0.9, 1.2, 4.0)
    ]

    assert levels == [0, 4, 7, 9]
    with pytest.raises(ValueError, match="speed 5"):
        prompter.ids("a", speaker=False, speed=5.0)


def test_a_tokenizer_of_another_model_is_refused(tmp_path, prompter):
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer" / "tokenizer.json"))
    with pytest.raises(WeightsError, match="has 128 tokens, not 21178"):
        Prompter(tokenizer, 21178)

    (tmp_path / "tokenizer" / "tokenizer.json").write_text("{}")
    with pytest.raises(WeightsError, match="cannot be read"):
        Prompter.read(tmp_path, TINY.text_vocabulary)
    with pytest.raises(WeightsError, match="missing"):
        Prompter.read(tmp_path / "nowhere", TINY.text_vocabulary)


def test_a_tokenizer_without_the_control_tokens_is_refused():
    from tokenizers import models

    with pytest.raises(WeightsError) as caught:
        Prompter(Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")), 1)
    assert "tokenizer/tokenizer.json has no token [spk_emb]" in caught.value.problems
