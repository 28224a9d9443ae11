"""The official kits of the services, each used as its own documentation does, pointed at another server.

    python sdks.py http://127.0.0.1:8080 https://localhost:8443 127.0.0.1:10200

The three ways in are plain, TLS and Wyoming. Prints a line of JSON for each: what was used, the bytes of audio that
came, and how it ended.
"""

import asyncio
import base64
import json
import sys

KEY = "any"
TEXT = ["Hello there, this is a test. ", "And here is a second sentence!"]
PCM = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000}


def openai(url, events=False):
    # docs: sdk openai
    from openai import OpenAI

    client = OpenAI(api_key=KEY, base_url=url + "/v1")
    # end
    asked = {"model": "gpt-4o-mini-tts", "voice": "alloy", "response_format": "pcm", "input": "".join(TEXT)}
    if not events:
        with client.audio.speech.with_streaming_response.create(**asked) as answer:
            return b"".join(answer.iter_bytes()), answer.headers["content-type"]
    audio, last = b"", ""
    with client.audio.speech.with_streaming_response.create(**asked, stream_format="sse") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                audio += base64.b64decode(event.get("audio", ""))
                last = event["type"]
    return audio, last


def openai_events(url):
    return openai(url, events=True)


def cartesia(url):
    # docs: sdk cartesia
    from cartesia import Cartesia

    client = Cartesia(api_key=KEY, base_url=url, websocket_base_url=url.replace("http", "ws", 1))
    # end
    audio, last = b"", ""
    with client, client.tts.websocket_connect() as socket:
        context = socket.context(model_id="sonic-3", voice={"mode": "id", "id": "heart"}, output_format=PCM, timeout=10)
        for piece in TEXT:
            context.push(piece)
        context.no_more_inputs()
        for event in context.receive():
            last = event.type
            audio += (event.audio or b"") if event.type == "chunk" else b""
    return audio, last


def cartesia_async(url):
    from cartesia import AsyncCartesia

    async def speak():
        audio, last = b"", ""
        client = AsyncCartesia(api_key=KEY, base_url=url, websocket_base_url=url.replace("http", "ws", 1))
        async with client, client.tts.websocket_connect() as socket:
            context = socket.context(
                model_id="sonic-3", voice={"mode": "id", "id": "heart"}, output_format=PCM, timeout=10
            )
            for piece in TEXT:
                await context.push(piece)
            await context.no_more_inputs()
            async for event in context.receive():
                last = event.type
                audio += (event.audio or b"") if event.type == "chunk" else b""
        return audio, last

    return asyncio.run(speak())


def deepgram(url, clear=False):
    import threading

    # docs: sdk deepgram
    from deepgram import DeepgramClient
    from deepgram.environment import DeepgramClientEnvironment

    socket_url = url.replace("http", "ws", 1)
    here = DeepgramClientEnvironment(
        base=url,
        production=socket_url,
        agent=socket_url,
        agent_rest=url,
    )
    client = DeepgramClient(api_key=KEY, environment=here)
    # end
    from deepgram.core.events import EventType
    from deepgram.speak.v1.types import SpeakV1Text

    heard, flushed = [], threading.Event()

    def on_message(message):
        heard.append(message)
        if getattr(message, "type", None) == "Flushed":
            flushed.set()

    with client.speak.v1.connect(model="heart", encoding="linear16", sample_rate=24000) as socket:
        socket.on(EventType.MESSAGE, on_message)
        threading.Thread(target=socket.start_listening, daemon=True).start()
        if clear:
            socket.send_text(SpeakV1Text(type="Speak", text="Nobody will hear this. "))
            socket.send_clear()
        for piece in TEXT:
            socket.send_text(SpeakV1Text(type="Speak", text=piece))
        socket.send_flush()
        flushed.wait(20)
        socket.send_close()
    audio = b"".join(message for message in heard if isinstance(message, bytes))
    return audio, getattr(heard[-1], "type", "audio")


def deepgram_clear(url):
    return deepgram(url, clear=True)


def elevenlabs(url):
    # docs: sdk elevenlabs
    from elevenlabs.client import ElevenLabs

    client = ElevenLabs(api_key=KEY, base_url=url)
    # end
    words = (f"{word} " for word in "".join(TEXT).split())
    chunks = client.text_to_speech.convert_realtime("heart", text=words, output_format="pcm_24000")
    return b"".join(chunks), "closed"


def wyoming(address):
    from wyoming.audio import AudioChunk
    from wyoming.client import AsyncTcpClient
    from wyoming.info import Describe, Info
    from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped

    async def speak():
        host, port = address.rsplit(":", 1)
        async with AsyncTcpClient(host, int(port)) as client:
            await client.write_event(Describe().event())
            info = Info.from_event(await client.read_event())
            assert [voice.name for voice in info.tts[0].voices] == ["heart"]
            await client.write_event(SynthesizeStart().event())
            for piece in TEXT:
                await client.write_event(SynthesizeChunk(piece).event())
            await client.write_event(Synthesize("".join(TEXT)).event())
            await client.write_event(SynthesizeStop().event())
            audio = b""
            while (event := await client.read_event()) is not None and not SynthesizeStopped.is_type(event.type):
                audio += AudioChunk.from_event(event).audio if AudioChunk.is_type(event.type) else b""
            return audio, event.type if event else "hung up"

    return asyncio.run(speak())


def main():
    plain, secure, tcp = sys.argv[1:]
    ways = [
        (openai, plain),
        (openai_events, plain),
        (cartesia, plain),
        (cartesia_async, secure),
        (deepgram, plain),
        (deepgram_clear, secure),
        (elevenlabs, secure),
        (wyoming, tcp),
    ]
    for way, url in ways:
        told = {"way": way.__name__, "audio": "", "end": None, "error": None}
        try:
            audio, told["end"] = way(url)
            told["audio"] = base64.b64encode(audio).decode()
        except Exception as problem:
            told["error"] = repr(problem)[:500]
        print(json.dumps(told), flush=True)


main()
