"""Texts to sound: by a server over the wire, and by the engine with nothing around it."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....client import Audio, Connection, Done, VoiceError
from ....codecs.packetizer import Format, StreamDecoder
from ....synth.engines.hibari import HibariEngine
from ....synth.segment import Segment, Style
from ....synth.text.segmenter import Segmenter

Pcm = NDArray[np.int16]
LEAD_MS = 30_000  # as fast as it is generated
TOGETHER = 4  # contexts at once


@dataclass(frozen=True, slots=True)
class Take:
    """The sound of a text, and where in it one segment ends and the next begins."""

    pcm: Pcm
    joins: tuple[int, ...] = ()


class Bare:
    """The engine in this process."""

    def __init__(self) -> None:
        self._engine = HibariEngine()
        self._engine.warm()
        self.rate = self._engine.info.sample_rate
        self._style = Style(self._engine.info.voices[0].id)

    def speak(self, text: str) -> Take:
        """As the server cuts it."""
        parts = [self._engine.synthesize(segment, self._style).pcm for segment in segments(text)]
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return Take(np.concatenate(parts) if parts else np.zeros(0, np.int16), tuple(int(end) for end in ends))


def segments(text: str) -> list[Segment]:
    segmenter = Segmenter()
    return segmenter.push(text) + segmenter.end()


async def hear(connection: Connection, text: str, codec: str = "opus", *, whole: bool = True) -> Pcm:
    """What a listener hears of `text`, decoded, to the sample; not `whole`: written word by word."""
    context = await connection.start(codec=codec, lead_ms=LEAD_MS, max_wait_ms=30_000)
    for delta in (text,) if whole else re.findall(r"\s*\S+|\s+", text):
        await context.send(delta)
    await context.end()
    payloads: list[bytes] = []
    samples = 0
    async for event in context:
        match event:
            case Audio(payload=payload):
                payloads.append(payload)
            case Done(samples=samples):
                pass
    started = context.started
    if started is None:
        raise VoiceError(f"the server had nothing to say to {text[:40]!r}")
    decoder = StreamDecoder(Format(codec, started.sample_rate, started.frame_samples, started.pre_skip))
    return np.concatenate([*(decoder.push(payload) for payload in payloads), decoder.finish(samples)])


async def hear_all(
    connection: Connection, texts: Sequence[str], codec: str = "opus", *, whole: bool = True
) -> list[Pcm]:
    room = asyncio.Semaphore(TOGETHER)

    async def one(text: str) -> Pcm:
        async with room:
            return await hear(connection, text, codec, whole=whole)

    return list(await asyncio.gather(*(one(text) for text in texts)))
