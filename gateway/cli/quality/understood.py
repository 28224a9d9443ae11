"""How well the voice is understood: word error rates of whisper-base over the wire, and beside it.

Each sentence is heard three ways: as Opus through a server, its words coming one by one; from the bare engine; and, the
control that shows that the measure can fail, the latter played backwards. Errors are counted against the sentence as it
is to be read ("$5" as "five dollars"): how a recognizer spells what it heard is not the voice's doing.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from ....client import connect
from ....synth.text.normalize.normalizer import normalize
from ..bench import Figure, server
from .asr import Listener, assemble_whisper_base, word_error_rate
from .sentences import sentences
from .speaking import Bare, Pcm, hear_all

REVERSED = 10
UNBRACKETED = str.maketrans("()[]", "    ")  # whisper's own normalization drops what is in brackets
PROMISED_LOSS = 0.5  # points
PROMISED_REVERSED = 90.0


async def measure(count: int) -> list[Figure]:
    texts = list(sentences(count))
    bare = Bare()
    async with server() as (url, _), connect(url) as connection:
        heard = await hear_all(connection, texts, whole=False)
    direct = [bare.speak(text).pcm for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        listener = Listener(assemble_whisper_base(Path(folder)), beam_size=1)
        over_wire = _error_points(listener, texts, heard, bare.rate)
        beside = _error_points(listener, texts, direct, bare.rate)
        backwards = _error_points(listener, texts[:REVERSED], (pcm[::-1] for pcm in direct), bare.rate)
    return [
        Figure(f"word errors, engine alone, {count} sentences", beside, "%"),
        Figure("word errors, Opus over the wire", over_wire, "%", beside + PROMISED_LOSS, "engine + 0.5 points"),
        Figure(
            "words understood of sound played backwards",
            100 - min(backwards, 100),
            "%",
            100 - PROMISED_REVERSED,
            "control",
        ),
    ]


def _error_points(listener: Listener, texts: list[str], sounds: Iterable[Pcm], rate: int) -> float:
    heard = [listener.hear(pcm, rate) for pcm in sounds]
    said = [normalize(text, "en-US").text.translate(UNBRACKETED) for text in texts[: len(heard)]]
    return 100 * word_error_rate(" ".join(said), " ".join(heard))
