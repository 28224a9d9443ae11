import json
import os

import pytest
from hibari.tts import ASSETS

from voxgate.synth.engines.ipa import from_ipa


@pytest.fixture(scope="module")
def vocabulary():
    with open(os.path.join(ASSETS, "vocab.json"), encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.parametrize(
    ("ipa", "phonemes"),
    [
        ("təˈmeɪtoʊ", "təmˈATO"),
        ("/ˈtʃiːz/", "ʧˈiz"),
        ("bɝːd", "bɜɹd"),
        ("ɹaɪt", "ɹIt"),
        ("ˈvɑks.ɡeɪt", "vˈɑksɡAt"),
        ("gr", "ɡɹ"),
    ],
)
def test_ipa_becomes_the_letters_of_the_voice(vocabulary, ipa, phonemes):
    assert sorted(from_ipa(ipa, vocabulary).replace("T", "t")) == sorted(phonemes.replace("T", "t"))


@pytest.mark.parametrize("ipa", ["", "ˈ", "漢字", "a)(b", "x/y", "ʘǃ", "1"])
def test_what_the_voice_cannot_say_is_nothing(vocabulary, ipa):
    assert from_ipa(ipa, vocabulary) == ""
