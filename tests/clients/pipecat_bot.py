"""A pipecat bot without a language model and without a sound card: stock services, pointed at another server.

    python pipecat_bot.py http://127.0.0.1:8080 '{"service": "elevenlabs", "texts": ["Hello there."]}' …

Runs one plan after the other and prints a line of JSON for each: the audio of every turn, its words, when what came,
and the errors. Needs nothing of voxgate. A plan has

    service      elevenlabs, cartesia, deepgram, flux or openai
    texts        what the bot says, one text a turn, word by word
    mode         "sentence" (default) or "token": who cuts the text
    rate         sample rate of the pipeline
    barge_in     seconds after which the first turn is interrupted
    mid_text     … before its text has ended
    idle         seconds of nothing before each turn but the first
"""

import asyncio
import base64
import json
import sys
import time

from loguru import logger
from pipecat.frames.frames import (
    EndFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    MetricsFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.metrics.metrics import TTFBMetricsData
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.tts_service import TextAggregationMode
from pipecat.workers.runner import WorkerRunner

PATIENCE_SECONDS = 20.0
AFTER_INTERRUPTION_SECONDS = 0.5
TOKENS_PER_SECOND = 100.0

KEY = "any"


def elevenlabs(url, rate, mode):
    # docs: pipecat elevenlabs
    from pipecat.services.elevenlabs.tts import ElevenLabsTTSService

    return ElevenLabsTTSService(
        api_key=KEY,
        url=url.replace("http", "ws", 1),
        sample_rate=rate,
        text_aggregation_mode=mode,
        settings=ElevenLabsTTSService.Settings(voice="heart"),
    )
    # end


def cartesia(url, rate, mode):
    # docs: pipecat cartesia
    from pipecat.services.cartesia.tts import CartesiaTTSService

    return CartesiaTTSService(
        api_key=KEY,
        url=url.replace("http", "ws", 1) + "/tts/websocket",
        sample_rate=rate,
        text_aggregation_mode=mode,
        settings=CartesiaTTSService.Settings(voice="heart"),
    )
    # end


def deepgram(url, rate, mode):
    # docs: pipecat deepgram
    from pipecat.services.deepgram.tts import DeepgramTTSService

    return DeepgramTTSService(
        api_key=KEY,
        base_url=url.replace("http", "ws", 1),
        sample_rate=rate,
        settings=DeepgramTTSService.Settings(voice="heart"),
    )
    # end


def flux(url, rate, mode):
    # docs: pipecat deepgram flux
    from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService

    return DeepgramFluxTTSService(
        api_key=KEY,
        url=url.replace("http", "ws", 1) + "/v2/speak",
        sample_rate=rate,
        settings=DeepgramFluxTTSService.Settings(voice="heart"),
    )
    # end


def openai(url, rate, mode):
    # docs: pipecat openai
    from pipecat.services.openai.tts import OpenAITTSService

    return OpenAITTSService(
        api_key=KEY,
        base_url=url + "/v1",
        sample_rate=rate,
        settings=OpenAITTSService.Settings(voice="alloy"),
    )
    # end


SERVICES = {each.__name__: each for each in (elevenlabs, cartesia, deepgram, flux, openai)}


class Ear(FrameProcessor):
    """Takes down what comes out of the service."""

    def __init__(self):
        super().__init__()
        self.turns = []
        self.first_bytes = []  # pipecat's own measurements
        self.stopped = asyncio.Event()

    def begin(self):
        self.stopped.clear()
        self.turns.append({"audio": b"", "words": [], "rates": set(), "stopped": False, "first_at": None})

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        turn = self.turns[-1] if self.turns else None
        if turn is not None and isinstance(frame, TTSAudioRawFrame):
            turn["first_at"] = turn["first_at"] or time.monotonic()
            turn["audio"] += frame.audio
            turn["rates"].add(frame.sample_rate)
        elif turn is not None and isinstance(frame, TTSTextFrame):
            turn["words"].append([frame.text, round((frame.pts or 0) / 1e9, 3)])
        elif turn is not None and isinstance(frame, TTSStoppedFrame):
            turn["stopped"] = True
            self.stopped.set()
        elif isinstance(frame, MetricsFrame):
            self.first_bytes += [data.value for data in frame.data if isinstance(data, TTFBMetricsData) and data.value]
        await self.push_frame(frame, direction)


async def say(worker, ear, text, *, closes):
    ear.begin()
    await worker.queue_frame(LLMFullResponseStartFrame())
    for token in text.replace(" ", "\0 ").split("\0"):
        await worker.queue_frame(LLMTextFrame(token))
        await asyncio.sleep(1 / TOKENS_PER_SECOND)
    if closes:
        await worker.queue_frame(LLMFullResponseEndFrame())


async def converse(worker, ear, plan, started, errors):
    await asyncio.wait_for(started.wait(), PATIENCE_SECONDS)
    await asyncio.sleep(0.3)  # the services connect in a task of their own and tell nobody
    barge_in = plan.get("barge_in")
    for number, text in enumerate(plan["texts"]):
        if number:
            await asyncio.sleep(plan.get("idle", 0.0))
        if number == 0 and barge_in:
            await say(worker, ear, text, closes=not plan.get("mid_text"))
            await asyncio.sleep(barge_in)
            await worker.queue_frame(InterruptionFrame())
            await asyncio.sleep(AFTER_INTERRUPTION_SECONDS)
            continue
        await say(worker, ear, text, closes=True)
        try:
            await asyncio.wait_for(ear.stopped.wait(), PATIENCE_SECONDS)
        except TimeoutError:
            errors.append("never stopped")
    await worker.queue_frame(EndFrame())


async def run(url, plan):
    rate = plan.get("rate", 24000)
    mode = TextAggregationMode.TOKEN if plan.get("mode") == "token" else TextAggregationMode.SENTENCE
    service, ear, errors, started = SERVICES[plan["service"]](url, rate, mode), Ear(), [], asyncio.Event()
    worker = PipelineWorker(
        Pipeline([service, ear]),
        cancel_on_idle_timeout=False,
        enable_rtvi=False,
        params=PipelineParams(audio_out_sample_rate=rate, enable_metrics=True),
    )

    @worker.event_handler("on_pipeline_started")
    async def _started(worker, frame):
        started.set()

    @worker.event_handler("on_pipeline_error")
    async def _failed(worker, frame):
        errors.append(str(frame.error)[:300])

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await asyncio.gather(runner.run(), converse(worker, ear, plan, started, errors))
    turns = [
        {
            "audio": base64.b64encode(turn["audio"]).decode(),
            "words": turn["words"],
            "rates": sorted(turn["rates"]),
            "stopped": turn["stopped"],
        }
        for turn in ear.turns
    ]
    return {"turns": turns, "first_bytes": ear.first_bytes, "errors": errors, "usable": service.is_usable}


async def main():
    url, *plans = sys.argv[1:]
    for plan in plans:
        print(json.dumps(await run(url, json.loads(plan))), flush=True)


logger.remove()
logger.add(sys.stderr, level="WARNING")
asyncio.run(main())
