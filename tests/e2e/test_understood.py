"""What the server says is understood: text in over the wire, Opus out, a recognizer writes down what it hears.

The same audio played backwards is not understood, which shows that the measure can fail.
"""

import asyncio
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from running import running_server
from voxgate.client import Audio, Connection, Done, connect
from voxgate.codecs.packetizer import Format, StreamDecoder
from voxgate.gateway.cli.quality.asr import Listener, assemble_whisper_base, word_error_rate

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "The committee will meet in March 2025, and flight 482 leaves at half past seven.",
    "Please bring your passport, two photographs, and fifty dollars in cash.",
    "Where did you put the keys to the garage, and when will you be back home?",
    "Dr. Smith and Mrs. Jones travelled to the coast in April; it rained for eleven days.",
    "Hello! I am a voice that runs on your own machine. How can I help you today?",
    "Although the storm had passed by noon, the harbour stayed closed until the evening, because the waves were still "
    "too high for the smaller boats.",
    "It costs $59.99, about 20 percent less than last year.",
]


@dataclass(frozen=True)
class Speech:
    pcm: NDArray[np.int16]
    sample_rate: int


@pytest.fixture(scope="module")
def spoken() -> list[Speech]:
    """Every text, spoken at the same time over one connection, its words coming one by one as from a language model."""

    async def speak_all(url: str) -> list[Speech]:
        async with connect(url) as connection:
            return await asyncio.gather(*(speak(connection, text) for text in TEXTS))

    with running_server() as url:
        return asyncio.run(speak_all(url))


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Listener:
    return Listener(assemble_whisper_base(tmp_path_factory.mktemp("whisper")))


async def speak(connection: Connection, text: str) -> Speech:
    context = await connection.start(codec="opus")
    for delta in text.split(" "):
        await context.send(f"{delta} ")
    await context.end()
    payloads, samples = [], 0
    async for event in context:
        match event:
            case Audio(payload=payload):
                payloads.append(payload)
            case Done(samples=samples):
                pass
    started = context.started
    assert started is not None
    decoder = StreamDecoder(Format("opus", started.sample_rate, started.frame_samples, started.pre_skip))
    pcm = np.concatenate([*(decoder.push(payload) for payload in payloads), decoder.finish(samples)])
    return Speech(pcm, started.sample_rate)


def test_a_recognizer_writes_down_what_was_said(spoken, listener):
    heard = [listener.hear(speech.pcm, speech.sample_rate) for speech in spoken]

    assert word_error_rate(" ".join(TEXTS), " ".join(heard)) <= 0.02, heard


def test_the_same_audio_backwards_is_not_understood(spoken, listener):
    heard = listener.hear(spoken[0].pcm[::-1], spoken[0].sample_rate)

    assert word_error_rate(TEXTS[0], heard) >= 0.9, heard
