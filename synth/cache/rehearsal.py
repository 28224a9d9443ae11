"""Speaks the phrase pool at the start of a server, the way any text is spoken, so that it can be pinned.

Owns the start and the retries. The synthesizer keeps what comes of it in its caches, under the keys pinned here.
"""

import asyncio
import itertools
from collections.abc import Iterable

from ..engine import Voice
from ..segment import Segment, Style, Urls
from ..speech import Speech
from ..synthesis import Synthesis
from ..text.lexicon import Lexicon
from .key import key_of
from .phrases import Phrase, PhrasesError, segments

TOGETHER = 16  # segments handed over at once: enough for every worker, little enough for a queue nobody else is in
PLAIN = Lexicon()  # pronounces nothing in any special way
ATTEMPTS = 3  # a worker that dies takes one with it


async def rehearse(
    synthesizer: Synthesis, phrases: Iterable[Phrase], lexicon: Lexicon = PLAIN, urls: Urls = "short"
) -> None:
    """Until every phrase is pinned. Raises `PhrasesError` for one that the voices cannot speak.

    Utterances get negative ids: those of listeners are positive.
    """
    await synthesizer.wait_ready()
    takes: dict[bytes, tuple[Style, Segment]] = {}
    for phrase in phrases:
        voice = _voice(phrase, synthesizer.voices)
        style = Style(voice.id, phrase.speed, phrase.seed, urls)
        cut = [
            lexicon.apply(segment, voice.id, voice.language)
            for segment in segments(phrase.text, voice.scripts, phrase.speed)
        ]
        if not cut:
            raise PhrasesError(f"the voice {voice.id!r} cannot speak the phrase {phrase.text!r}")
        info = synthesizer.info_of(voice.id)
        takes |= {key_of(info, style, segment): (style, segment) for segment in cut}
    synthesizer.caches.pin(takes)
    room = asyncio.Semaphore(TOGETHER)
    ids = itertools.count(-1, -1)

    async def speak(style: Style, segment: Segment) -> None:
        async with room:
            failure: str | None = None
            for _ in range(ATTEMPTS):
                take = _Take()
                utterance = next(ids)
                synthesizer.open(utterance, style, take)
                synthesizer.speak(utterance, segment)
                failure = await take.ended
                synthesizer.close_utterance(utterance)
                if failure is None:
                    return
            raise PhrasesError(f"{segment.text!r} of a phrase cannot be spoken: {failure}")

    async with asyncio.TaskGroup() as group:
        for style, segment in takes.values():
            group.create_task(speak(style, segment))


class _Take:
    """Listens to one segment."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def on_audio(self, utterance: int, segment: Segment, speech: Speech, last: bool = True) -> None:
        if last:
            self.ended.set_result(None)

    def on_failed(self, utterance: int, message: str) -> None:
        self.ended.set_result(message)


def _voice(phrase: Phrase, voices: tuple[Voice, ...]) -> Voice:
    for voice in voices:
        if phrase.voice in (None, voice.id):
            return voice
    raise PhrasesError(f"no voice {phrase.voice!r} for the phrase {phrase.text!r}")
