"""The stock text-to-speech plugins of LiveKit's agents, without a room: pointed at another server.

    python livekit_bot.py http://127.0.0.1:8080 '{"plugin": "cartesia", "texts": ["Hello there."]}' …

Runs one plan after the other and prints a line of JSON for each, like pipecat_bot.py. A plan has

    plugin       elevenlabs, elevenlabs_mp3, cartesia, deepgram, openai, openai_raw, pocket or streaming
    texts        what the agent says, one text a turn, word by word
    barge_in     seconds of the first turn after which it is given up
    idle         seconds of nothing between the turns
"""

import asyncio
import base64
import json
import sys
import time

import aiohttp

KEY = "any"


def elevenlabs(url, http):
    # docs: livekit elevenlabs
    from livekit.plugins import elevenlabs

    return elevenlabs.TTS(api_key=KEY, base_url=url + "/v1", voice_id="heart", encoding="pcm_24000", http_session=http)
    # end


def elevenlabs_mp3(url, http):
    from livekit.plugins import elevenlabs

    return elevenlabs.TTS(api_key=KEY, base_url=url + "/v1", voice_id="heart", http_session=http)


def cartesia(url, http):
    # docs: livekit cartesia
    from livekit.plugins import cartesia

    return cartesia.TTS(api_key=KEY, base_url=url, voice="heart", http_session=http)
    # end


def deepgram(url, http):
    # docs: livekit deepgram
    from livekit.plugins import deepgram

    return deepgram.TTS(api_key=KEY, base_url=url + "/v1/speak", http_session=http)
    # end


def openai(url, http):
    # docs: livekit openai
    from livekit.plugins import openai

    return openai.TTS(api_key=KEY, base_url=url + "/v1", voice="alloy")
    # end


def openai_raw(url, http):
    from livekit.plugins import openai

    return openai.TTS(api_key=KEY, base_url=url + "/v1", voice="alloy", model="tts-1", response_format="pcm")


def pocket(url, http):
    # docs: livekit pocket
    from livekit.plugins import pocket

    return pocket.TTS(ws_url=url.replace("http", "ws", 1) + "/tts/ws", http_session=http)
    # end


def streaming(url, http):
    # docs: livekit streaming-tts
    from livekit_streaming_tts.plugin import StreamingTTS

    return StreamingTTS(ws_url=url.replace("http", "ws", 1) + "/tts/ws", http_session=http)
    # end


PLUGINS = {
    each.__name__: each
    for each in (elevenlabs, elevenlabs_mp3, cartesia, deepgram, openai, openai_raw, pocket, streaming)
}


async def say(tts, text, barge_in):
    from livekit.agents import tts as agents

    tts_ = tts if tts.capabilities.streaming else agents.StreamAdapter(tts=tts)
    audio, words, rates = b"", [], set()
    interrupted = False
    async with tts_.stream() as stream:
        for token in text.replace(" ", "\0 ").split("\0"):
            stream.push_text(token)
            await asyncio.sleep(0.01)
        began_at = time.monotonic()
        if not barge_in:
            stream.end_input()

        async def hear():
            nonlocal audio
            async for event in stream:
                audio += bytes(event.frame.data)
                rates.add(event.frame.sample_rate)
                words.extend(
                    [str(word), word.start_time] for word in event.frame.userdata.get("lk.timed_transcripts", ())
                )

        hearing = asyncio.create_task(hear())
        if barge_in:
            await asyncio.sleep(max(0.0, began_at + barge_in - time.monotonic()))
            hearing.cancel()
            interrupted = True
        await asyncio.gather(hearing, return_exceptions=interrupted)
    return {
        "audio": base64.b64encode(audio).decode(),
        "words": words,
        "rates": sorted(rates),
        "interrupted": interrupted,
    }


async def run(url, plan):
    errors, metrics, turns = [], [], []
    async with aiohttp.ClientSession() as http:
        tts = PLUGINS[plan["plugin"]](url, http)
        tts.on("error", lambda error: errors.append(str(error.error)[:300]))
        tts.on("metrics_collected", metrics.append)
        for number, text in enumerate(plan["texts"]):
            if number:
                await asyncio.sleep(plan.get("idle", 0.0))
            try:
                turns.append(await say(tts, text, plan.get("barge_in") if number == 0 else None))
            except Exception as problem:
                errors.append(repr(problem)[:300])
        await tts.aclose()
    told = [{"ttfb": each.ttfb, "reused": getattr(each, "connection_reused", None)} for each in metrics]
    return {"turns": turns, "metrics": told, "errors": errors}


async def main():
    url, *plans = sys.argv[1:]
    for plan in plans:
        print(json.dumps(await run(url, json.loads(plan))), flush=True)


asyncio.run(main())
