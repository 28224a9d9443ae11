import base64
import json

import httpx
import numpy as np

PATH = "/v1/text-to-speech/some-voice"
ASKED = {"text": "Hello there, this is a test.", "model_id": "eleven_flash_v2_5", "voice_settings": {"speed": 1.0}}


def test_speech_is_streamed_in_the_format_asked_for(server: str):
    pcm = httpx.post(f"{server}{PATH}/stream?output_format=pcm_24000", json=ASKED, timeout=30)
    mp3 = httpx.post(f"{server}{PATH}?optimize_streaming_latency=3", json=ASKED, timeout=30)

    assert (pcm.status_code, pcm.headers["content-type"]) == (200, "audio/pcm")
    assert np.abs(np.frombuffer(pcm.content, "<i2")).max() > 3000
    assert mp3.headers["content-type"] == "audio/mpeg"


def test_lines_carry_the_audio_and_every_character_of_the_text(server: str):
    plain = httpx.post(f"{server}{PATH}/stream?output_format=pcm_24000", json=ASKED, timeout=30).content
    answer = httpx.post(f"{server}{PATH}/stream/with-timestamps?output_format=pcm_24000", json=ASKED, timeout=30)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    aligned = [line["alignment"] for line in lines if line["alignment"]]

    assert b"".join(base64.b64decode(line["audio_base64"]) for line in lines) == plain
    assert "".join(character for each in aligned for character in each["characters"]).strip() == ASKED["text"]
    ends = [end for each in aligned for end in each["character_end_times_seconds"]]
    assert ends == sorted(ends)
    assert abs(ends[-1] - len(plain) / 48000) < 0.05


def test_voices_are_listed_for_those_who_ask_as_elevenlabs_clients_do(server: str):
    listed = httpx.get(f"{server}/v1/voices", headers={"xi-api-key": "k"}).json()["voices"]

    assert [(voice["voice_id"], voice["name"], voice["category"]) for voice in listed] == [
        ("heart", "heart", "premade")
    ]


def test_a_fault_is_told_as_elevenlabs_tells_it(server: str):
    answer = httpx.post(f"{server}{PATH}/stream?output_format=ulaw_16000", json=ASKED)

    assert (answer.status_code, answer.json()["detail"]["status"]) == (400, "bad_message")
