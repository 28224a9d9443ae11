import pytest
from hibari import Hibari

from voxgate.synth.engines.pronunciation import MAX_PHONEMES, Pronouncer
from voxgate.synth.segment import Mark, MarkKind
from voxgate.synth.text.normalize.normalizer import normalize


@pytest.fixture(scope="module")
def hibari() -> Hibari:
    return Hibari()


@pytest.fixture(scope="module")
def pronouncer(hibari: Hibari) -> Pronouncer:
    return Pronouncer(hibari.g2p, hibari.vocab)


def phonemes(pronouncer: Pronouncer, text: str, *marks: Mark) -> list[str]:
    return [phrase.phonemes for phrase in pronouncer.phrases(normalize(text, "en-US", marks))]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("It costs $3.50.", "It costs three dollars and fifty cents."),
        ("call 555-0123", "call five five five, zero one two three"),
        ("She said no.", "She said no."),
    ],
)
def test_what_is_written_is_spoken_as_its_words(pronouncer: Pronouncer, written: str, said: str):
    assert phonemes(pronouncer, written) == phonemes(pronouncer, said)


def test_a_pronunciation_is_spoken_and_one_the_voice_lacks_is_not(pronouncer: Pronouncer):
    def marked(text: str, ipa: str) -> list[str]:
        return phonemes(pronouncer, text, Mark(4, 7, MarkKind.PHONEMES, ipa))

    assert marked("the cat", "dˈɔɡ") == marked("the dog", "dˈɔɡ") != marked("the cat", "漢")


@pytest.mark.parametrize(
    "text",
    [
        "Hello there. How are you? \u201cFine.\u201d (She said so.)",
        "can't won't well-known don't you're o'clock",
        "A b c d",
    ],
)
def test_parts_say_the_words_in_order(pronouncer: Pronouncer, hibari: Hibari, text: str):
    spoken = normalize(text, "en-US")

    phrases = pronouncer.phrases(spoken)

    assert [phrase.phonemes for phrase in phrases] == hibari.phonemize(text)
    said = [spoken.text[part.start : part.stop] for phrase in phrases for part in phrase.parts or ()]
    assert "".join(said) == "".join(spoken.text.split()).replace("\u201d", "")  # a closer is dropped at its end


def test_a_word_the_g2p_breaks_on_is_spelled_and_still_in_its_place(pronouncer: Pronouncer):
    (phrase,) = pronouncer.phrases(normalize("no 0th of them", "xx"))

    assert phrase.parts is not None
    assert "".join("no 0th of them"[part.start : part.stop] for part in phrase.parts) == "no0thofthem"


def test_long_phonemes_are_cut_at_spaces_and_keep_their_parts(pronouncer: Pronouncer):
    spoken = normalize("internationalization " * 60, "en-US")

    phrases = pronouncer.phrases(spoken)

    assert len(phrases) > 1
    assert all(len(phrase.phonemes) <= MAX_PHONEMES for phrase in phrases)
    parts = [part for phrase in phrases for part in phrase.parts or ()]
    assert [spoken.text[part.start : part.stop] for part in parts] == ["internationalization"] * 60
    said = {phrase.phonemes[part.begin : part.end] for phrase in phrases for part in phrase.parts or ()}
    assert len(said) == 1
