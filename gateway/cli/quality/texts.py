"""Whether text is lost on its way to the voice, whole or token by token, and what writing it out costs. No model."""

import re
import statistics
import time

from ....synth.segment import Segment
from ....synth.text.blank import blank
from ....synth.text.normalize.normalizer import normalize
from ....synth.text.segmenter import Segmenter
from ..bench import Figure
from .sentences import sentences

PROMISED_NORMALIZE_MS = 2.0
_TOKEN = re.compile(r"\s*\S{1,5}|\s+")  # of a language model, about
_WORD = re.compile(r"[^\W_]+")


async def measure(count: int) -> list[Figure]:
    texts = list(sentences(count))
    whole = [lost(text, cut([text])) for text in texts]
    in_tokens = [lost(text, cut(_TOKEN.findall(text))) for text in texts]
    differ = sum(cut([text]) != cut(_TOKEN.findall(text)) for text in texts)
    together = " ".join(texts)
    once = [lost(together, cut([together])), lost(together, cut(_TOKEN.findall(together)))]
    milliseconds: list[float] = []
    for text in texts:
        began_at = time.perf_counter()
        normalize(text, "en-US")
        milliseconds.append((time.perf_counter() - began_at) * 1000)
    return [
        Figure(f"words lost, {count} sentences, whole", sum(map(len, whole)), "", 0, "none"),
        Figure("words lost, token by token", sum(map(len, in_tokens)), "", 0, "none"),
        Figure("words lost, as one text, both ways", sum(map(len, once)), "", 0, "none"),
        Figure("sentences cut otherwise token by token", differ, "", 0, "none"),
        Figure(
            "normalization of a sentence, p50", statistics.median(milliseconds), "ms", PROMISED_NORMALIZE_MS, "2 ms"
        ),
        Figure("normalization, worst", max(milliseconds), "ms"),
    ]


def cut(deltas: list[str]) -> list[Segment]:
    segmenter = Segmenter()
    segments = [segment for delta in deltas for segment in segmenter.push(delta)]
    return segments + segmenter.end()


def lost(text: str, segments: list[Segment]) -> list[str]:
    """Words of `text` that no segment has, or of which nothing is said in what is written out for the engine."""
    kept = blank(text, ("Latin",)).text
    joined = "".join(segment.text for segment in segments)
    missing = [word[0] for word in _WORD.finditer(kept) if joined[word.start() : word.end()] != word[0]]
    for segment in segments:
        spoken = normalize(segment.text, "en-US", segment.marks)
        said: set[int] = set()
        for at, char in enumerate(spoken.text):
            if char.isalnum():
                said.update(range(*spoken.source(at)))
        missing += [word[0] for word in _WORD.finditer(segment.text) if said.isdisjoint(range(*word.span()))]
    return missing
