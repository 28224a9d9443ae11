"""The International Phonetic Alphabet in the letters of hibari's phonemes, which are misaki's for American English."""

import unicodedata

MOST_CODE_POINTS = 64
# Longest first: diphthongs and affricates are one letter each (misaki, EN_PHONES.md, Apache-2.0).
_LETTERS = {
    "t͡ʃ": "ʧ", "d͡ʒ": "ʤ", "tʃ": "ʧ", "dʒ": "ʤ", "eɪ": "A", "aɪ": "I", "aʊ": "W", "ɔɪ": "Y", "oʊ": "O", "əʊ": "O",
    "ɜːr": "ɜɹ", "ɜː": "ɜɹ", "ɝː": "ɜɹ", "ɝ": "ɜɹ", "ɚ": "əɹ", "əl": "ᵊl", "l̩": "ᵊl", "n̩": "ᵊn", "m̩": "ᵊm",
    "iː": "i", "uː": "u", "ɑː": "ɑ", "ɔː": "ɔ", "g": "ɡ", "r": "ɹ", "ɫ": "l", "e": "ɛ", "a": "ɑ", "o": "O", "ɒ": "ɑ",
    "ɐ": "ɐ", "ʍ": "w", "x": "k", "ɾ": "T", "ʔ": "t", "'": "ˈ", ",": "ˌ", ".": "", "ː": "", "‿": "", "͡": "", "-": "",
}  # fmt: skip
_ORDER = sorted(_LETTERS, key=len, reverse=True)


def from_ipa(ipa: str, vocabulary: dict[str, int]) -> str:
    """Phonemes of the voice; "" when `ipa` holds a sound that it does not have, or none."""
    text = unicodedata.normalize("NFD", ipa.strip().strip("/[]"))[:MOST_CODE_POINTS]
    out: list[str] = []
    at = 0
    while at < len(text):
        found = next((letters for letters in _ORDER if text.startswith(letters, at)), "")
        out.append(_LETTERS[found] if found else text[at])
        at += len(found) or 1
    phonemes = "".join(out)
    if any(char not in vocabulary or char in "()[]/" for char in phonemes) or all(
        unicodedata.category(char) == "Lm" or not char.isalpha() for char in phonemes
    ):
        return ""
    return phonemes
