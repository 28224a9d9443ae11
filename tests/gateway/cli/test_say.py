import asyncio
import os
import signal
import stat
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response

from scripted_peer import Peer, audio, peer, started
from voxgate.codecs.packetizer import Packetizer, choose_format, pack_audio
from voxgate.gateway.cli import main

SAMPLES = np.arange(2000, dtype="<i2")


def done(samples: int) -> dict:
    return {"type": "done", "context": "c1", "samples": samples}


async def speak(server: Peer) -> list[dict]:
    """Answer everything with `SAMPLES` in two messages; returns what was asked."""
    heard = await server.hear_until("end")
    pcm = SAMPLES.tobytes()
    await server.say(started("c1"), audio(0, 0, pcm[:1000]), audio(1, 500, pcm[1000:]), done(len(SAMPLES)))
    return heard


async def say(*arguments: str) -> int:
    """`voxgate say` in this process, in a thread beside the peer's loop."""
    return await asyncio.to_thread(main, ["say", *arguments])


async def say_process(*arguments: str, **options) -> asyncio.subprocess.Process:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "voxgate", "say", *arguments, **pipes, **options)


def wav(path: Path) -> tuple[int, int, int, bytes]:
    with wave.open(str(path)) as file:
        return file.getnchannels(), file.getsampwidth(), file.getframerate(), file.readframes(file.getnframes())


def player(folder: Path, name: str, script: str) -> dict[str, str]:
    """The environment in which `name` is the only player there is."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    python = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{folder}:{python}", "OUT": str(folder / "played")}


async def test_a_wav_file_has_an_exact_header(tmp_path, capsys):
    path = tmp_path / "hello.wav"
    async with peer(speak) as url:
        assert await say("Hello.", "-o", str(path), "--url", url) == 0

    assert wav(path) == (1, 2, 24000, SAMPLES.tobytes())
    assert path.stat().st_size == 44 + 2 * len(SAMPLES)
    told = capsys.readouterr()
    assert told.out == ""
    assert "first audio after " in told.err
    assert "0.08 s spoken, no underruns" in told.err


async def test_what_is_asked_for_is_what_the_flags_say(tmp_path):
    asked = []

    async def listen(server: Peer) -> None:
        asked.extend(await speak(server))

    flags = ["--voice", "heart", "--codec", "pcm_s16le", "--speed", "1.5"]
    async with peer(listen) as url:
        await say("Hello, you.", "-o", str(tmp_path / "x.pcm"), *flags, "--url", url)

    assert asked == [
        {"type": "start", "context": "c1", "voice": "heart", "codec": "pcm_s16le", "speed": 1.5, "lead_ms": 30000},
        {"type": "text", "context": "c1", "text": "Hello, you."},
        {"type": "end", "context": "c1"},
    ]


async def test_opus_is_decoded_to_exactly_the_samples_of_the_context(tmp_path):
    form = choose_format("opus", 24000, 20, 24000)

    async def speak_opus(server: Peer) -> None:
        packetizer = Packetizer(form, 24000)
        packets = packetizer.push(np.full(10001, 1000, np.int16)) + packetizer.finish()
        await server.hear_until("end")
        await server.say(started("c1", codec="opus", pre_skip=form.pre_skip))
        for sequence, packet in enumerate(packets):
            await server.say(audio(sequence, packet.start, pack_audio(form, [packet])))
        await server.say(done(10001))

    path = tmp_path / "x.pcm"
    async with peer(speak_opus) as url:
        assert await say("Hello.", "-o", str(path), "--codec", "opus", "--url", url) == 0

    assert path.stat().st_size == 2 * 10001


@pytest.mark.parametrize(("name", "codec"), [("x.ogg", "ogg_opus"), ("x.OPUS", "ogg_opus"), ("x.mp3", "mp3")])
async def test_a_file_of_the_wires_own_codec_is_what_came(name, codec, tmp_path, capsys):
    asked = []

    async def listen(server: Peer) -> None:
        asked.extend(await server.hear_until("end"))
        await server.say(started("c1", codec=codec), audio(0, 0, b"any"), audio(1, 480, b" bytes"), done(960))

    path = tmp_path / name
    async with peer(listen) as url:
        assert await say("Hello.", "-o", str(path), "--url", url) == 0

    assert path.read_bytes() == b"any bytes"
    assert asked[0]["codec"] == codec
    assert "0.04 s spoken, no underruns" in capsys.readouterr().err


async def test_a_flac_file_is_made_of_the_samples_with_their_exact_number(tmp_path):
    path = tmp_path / "x.flac"
    async with peer(speak) as url:
        assert await say("Hello.", "-o", str(path), "--url", url) == 0

    command = ["ffmpeg", "-v", "error", "-i", str(path), "-f", "s16le", "-"]
    assert await asyncio.to_thread(subprocess.check_output, command) == SAMPLES.tobytes()
    assert int.from_bytes(path.read_bytes()[21:26]) & (1 << 36) - 1 == len(SAMPLES)


async def test_a_codec_that_only_its_end_decodes_is_written_whole(tmp_path):
    form = choose_format("mp3", 24000, 20, 24000)

    async def speak_mp3(server: Peer) -> None:
        packetizer = Packetizer(form, 24000)
        packets = packetizer.push(np.full(10001, 1000, np.int16)) + packetizer.finish()
        await server.hear_until("end")
        await server.say(started("c1", codec="mp3", pre_skip=form.pre_skip))
        await server.say(audio(0, 0, pack_audio(form, packets)), done(10001))

    path = tmp_path / "x.pcm"
    async with peer(speak_mp3) as url:
        assert await say("Hello.", "-o", str(path), "--codec", "mp3", "--url", url) == 0

    assert path.stat().st_size == 2 * 10001


async def test_without_its_library_flac_is_a_usage_error_that_names_the_extra(tmp_path):
    script = "import sys; sys.modules['soundfile'] = None; from voxgate.gateway.cli import main; sys.exit(main())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script, "say", "Hello.", "-o", str(tmp_path / "x.flac")),
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await process.communicate()

    assert (process.returncode, told.count(b"\n")) == (2, 1)
    assert b"voxgate[flac]" in told


async def test_a_dash_is_raw_audio_on_stdout():
    async with peer(speak) as url:
        process = await say_process("Hello.", "-o", "-", "--url", url)
        out, told = await process.communicate()

    assert (process.returncode, out) == (0, SAMPLES.tobytes())
    assert b"no underruns" in told


async def test_stdin_is_spoken_as_it_arrives_and_cut_in_no_character(tmp_path):
    texts: asyncio.Queue[str] = asyncio.Queue()

    async def listen(server: Peer) -> None:
        while (message := await server.hear())["type"] != "end":
            if message["type"] == "text":
                texts.put_nowait(message["text"])
        await server.say(started("c1"), done(0))

    async with peer(listen) as url:
        process = await say_process("-o", str(tmp_path / "x.pcm"), "--url", url)
        assert process.stdin is not None
        euro = "€".encode()
        process.stdin.write(b" a " + euro[:2])
        first = await texts.get()
        process.stdin.write(euro[2:] + b"\n")
        second = await texts.get()
        process.stdin.write(euro[:1])
        process.stdin.close()
        _, told = await process.communicate()

    assert [first, second, texts.get_nowait()] == [" a ", "€\n", "\N{REPLACEMENT CHARACTER}"]
    assert (process.returncode, told) == (0, b"nothing to speak\n")


async def test_a_player_is_fed_what_a_decoder_gives(tmp_path):
    environment = player(tmp_path, "aplay", 'echo "$@" > "$OUT.arguments"; exec /bin/cat > "$OUT"')
    async with peer(speak) as url:
        process = await say_process("Hello.", "--play", "--codec", "pcm_s16le", "--url", url, env=environment)
        await process.communicate()

    assert process.returncode == 0
    assert (tmp_path / "played").read_bytes() == SAMPLES.tobytes()
    assert (tmp_path / "played.arguments").read_text() == "-q -t raw -f S16_LE -c 1 -r 24000 -\n"


async def test_a_player_that_fails_is_told_with_a_way_out(tmp_path):
    environment = player(tmp_path, "paplay", "exit 3")
    async with peer(speak) as url:
        process = await say_process("Hello.", "--codec", "pcm_s16le", "--url", url, env=environment)
        _, told = await process.communicate()

    assert process.returncode == 1
    assert told == b"voxgate say: paplay stopped playing; is there a sound device? -o FILE writes a file\n"


async def test_without_a_player_a_file_is_written_and_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    async with peer(speak) as url:
        assert await say("Hello.", "--url", url) == 0
        assert await say("Hello.", "--play", "--url", url) == 2

    assert wav(tmp_path / "voxgate.wav")[3] == SAMPLES.tobytes()
    assert "nothing to play with, writing voxgate.wav" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("-o", "x.aac"), ("--url", "nowhere", "-o", "x.wav")])
async def test_what_cannot_be_is_a_usage_error(arguments, capsys):
    assert await say("Hello.", *arguments) == 2

    assert capsys.readouterr().err.count("\n") == 1


async def test_no_server_is_one_line_and_exit_1(tmp_path, capsys):
    path = tmp_path / "x.wav"
    assert await say("Hello.", "-o", str(path), "--url", "ws://127.0.0.1:1") == 1

    told = capsys.readouterr().err
    assert told.startswith("voxgate say: ws://127.0.0.1:1/v1/stream: ")
    assert told.count("\n") == 1
    assert not path.exists()


async def test_a_full_house_is_one_line_and_exit_1(tmp_path, capsys):
    def full(*_) -> Response:
        return Response(503, "Service Unavailable", Headers({"Retry-After": "2", "Content-Length": "4"}), b"full")

    async with peer(speak, full) as url:
        assert await say("Hello.", "-o", str(tmp_path / "x.wav"), "--url", url) == 1

    assert capsys.readouterr().err == "voxgate say: refused with HTTP 503: full (try again in 2 s)\n"


@pytest.mark.parametrize("named", ["context", "about"])
async def test_an_error_of_the_server_is_told_and_exit_1(named, tmp_path, capsys):
    async def fail(server: Peer) -> None:
        await server.hear_until("end")
        await server.say({"type": "error", named: "c1", "code": "text_too_long", "message": "too much"})

    async with peer(fail) as url:
        assert await say("Hello.", "-o", str(tmp_path / "x.wav"), "--url", url) == 1

    assert capsys.readouterr().err == "voxgate say: text_too_long: too much\n"


async def test_an_interrupt_cancels_silences_and_tells_what_was_heard(tmp_path):
    environment = player(tmp_path, "paplay", "exec /bin/cat > /dev/null")
    cancel = {}

    async def go_on(server: Peer) -> None:
        await server.hear_until("end")
        await server.say(started("c1"), audio(0, 0, bytes(480000)))
        os.kill(process.pid, signal.SIGINT)
        cancel.update(await server.hear())
        await server.say({"type": "cancelled", "context": "c1", "sent": 240000, "heard": 9, "text": "Hello"})

    async with peer(go_on) as url:
        process = await say_process("Hello there.", "--codec", "pcm_s16le", "--url", url, env=environment)
        _, told = await process.communicate()

    assert process.returncode == 130
    assert cancel["type"] == "cancel"
    assert 0 <= cancel.get("played", 0) < 240000
    assert told.decode() == "\nvoxgate say: stopped after “Hello”\n"


async def test_a_reader_of_stdout_that_goes_away_leaves_one_line():
    async def go_on(server: Peer) -> None:
        await server.hear_until("end")
        await server.say(started("c1"), *(audio(at, 0, bytes(65536)) for at in range(8)), done(8 * 32768))

    read, write = os.pipe()
    os.close(read)
    async with peer(go_on) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "voxgate", "say", "Hello.", "-o", "-", "--url", url),
            stdout=write,
            stderr=asyncio.subprocess.PIPE,
        )
        os.close(write)
        _, told = await process.communicate()

    assert (process.returncode, told) == (1, b"voxgate say: [Errno 32] Broken pipe\n")
