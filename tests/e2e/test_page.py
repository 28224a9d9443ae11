"""The bundled page in a real browser, with its sound played: headless Chromium renders to a sound device of its own."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright, expect

from running import running_server
from voxgate.client import Audio, Context, Done, connect
from voxgate.codecs.opus import OpusDecoder

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHROMIUM = "/usr/bin/chromium"
CHROMIUM_FLAGS = [
    "--no-sandbox",  # the tests may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A name that is not localhost: over http, browsers give it neither worklets nor WebCodecs.
    "--host-resolver-rules=MAP voxgate.test 127.0.0.1",
]
TEXT = "Hello there, this is a small test. It has two sentences."
OVER_MS = 30_000


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server() as url:
        yield url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        yield browser
        await browser.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the page wrote to its console as an error, or threw; content-security violations are among them."""
    return []


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, complaints: list[str]) -> AsyncIterator[Page]:
    async with opened(browser, complaints) as page:
        yield page


@pytest_asyncio.fixture(loop_scope="module")
async def tapped(browser: Browser, complaints: list[str]) -> AsyncIterator[Page]:
    """A page whose `heard()` gives all samples that went to the loudspeaker."""
    tap = "data:text/javascript," + quote((Path(__file__).parent / "tap.js").read_text())
    async with opened(browser, complaints, bypass_csp=True) as page:
        await page.add_init_script(f"const TAP = {json.dumps(tap)};" + INSTALL_TAP)
        yield page


@asynccontextmanager
async def opened(browser: Browser, complaints: list[str], *, bypass_csp: bool = False) -> AsyncIterator[Page]:
    context = await browser.new_context(viewport={"width": 1200, "height": 800}, bypass_csp=bypass_csp)
    page = await context.new_page()

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    await context.close()


# What a user does


async def open_page(page: Page, url: str) -> None:
    await page.goto(url)
    await expect(page.get_by_text("Connected")).to_be_visible(timeout=OVER_MS)


async def write(page: Page, text: str, *, codec: str = "opus", at_once: bool = False) -> None:
    await page.get_by_label("Codec").select_option(codec)
    if at_once:
        await page.get_by_role("slider", name="Written at").fill("51")
    await page.get_by_label("Text", exact=True).fill(text)


async def speak(page: Page) -> None:
    await page.get_by_role("button", name="Speak").click()


async def spoken(page: Page) -> None:
    await expect(page.get_by_text("Spoken to the end.")).to_be_visible(timeout=OVER_MS)


async def until(page: Page, condition: str) -> None:
    """Waits in the page; Playwright's own way evaluates strings there, which the page's policy forbids."""
    look = f"new Promise((met) => {{ const look = () => ({condition}) ? met() : setTimeout(look, 10); look(); }})"
    async with asyncio.timeout(OVER_MS / 1000):
        await page.evaluate(look)


async def figures(page: Page, *names: str) -> list[Any]:
    return [await page.evaluate(f"voxgate.{name}") for name in names]


# What should be heard

INSTALL_TAP = """
const addModule = AudioWorklet.prototype.addModule;
AudioWorklet.prototype.addModule = async function (...module) {
  await addModule.call(this, TAP);
  return addModule.apply(this, module);
};
const blocks = [];
const connect = AudioNode.prototype.connect;
AudioNode.prototype.connect = function (target, ...how) {
  if (target instanceof AudioDestinationNode) {
    const tap = new AudioWorkletNode(this.context, "tap", { numberOfOutputs: 0 });
    tap.port.onmessage = ({ data }) => blocks.push(...data);
    connect.call(this, tap);
    globalThis.heard = () => new Promise((resolve) => {
      tap.port.onmessage = ({ data }) => resolve(blocks.concat(data));
      tap.port.postMessage("");
    });
  }
  return connect.call(this, target, ...how);
};
"""


async def heard(page: Page) -> NDArray[np.float32]:
    return np.array(await page.evaluate("heard()"), np.float32)


async def sent(url: str, codec: str) -> tuple[list[Audio], int, int]:
    """What the server sends for TEXT: its audio messages, the stream's pre-skip, and its length in samples."""
    audio: list[Audio] = []
    samples = 0
    async with connect(url) as connection:
        context = await connection.start(codec=codec, lead_ms=30_000)
        await context.send(TEXT)
        await context.end()
        async for event in context:
            match event:
                case Audio():
                    audio.append(event)
                case Done():
                    samples = event.samples
    assert context.started is not None
    return audio, context.started.pre_skip, samples


def from_first_sound(signal: NDArray[np.float32]) -> NDArray[np.float32]:
    return signal[np.flatnonzero(signal)[0] :]


async def test_pcm_reaches_the_loudspeaker_sample_for_sample(url: str, tapped: Page, complaints: list[str]):
    audio, _, samples = await sent(url, "pcm_s16le")
    expected = np.frombuffer(b"".join(message.payload for message in audio), "<i2").astype(np.float32) / np.float32(
        32768
    )
    await open_page(tapped, url)
    await write(tapped, TEXT, codec="pcm_s16le", at_once=True)

    await speak(tapped)
    await spoken(tapped)

    assert await figures(tapped, "state", "codec", "samples", "rendered", "underruns", "dropped") == [
        "done", "pcm_s16le", samples, samples, 0, 0,
    ]  # fmt: skip
    expected = from_first_sound(expected)
    rendered = from_first_sound(await heard(tapped))
    assert np.array_equal(rendered[: len(expected)], expected)
    assert complaints == []


async def test_opus_reaches_the_loudspeaker_as_libopus_decodes_it(url: str, tapped: Page, complaints: list[str]):
    audio, pre_skip, samples = await sent(url, "opus")
    decoder = OpusDecoder(48_000)  # browsers decode Opus at this rate, whatever the stream's is
    decoded = np.concatenate([decoder.decode(packet) for message in audio for packet in message.packets()])
    expected = decoded[2 * pre_skip : 2 * (pre_skip + samples)].astype(np.float32) / np.float32(32768)
    await open_page(tapped, url)
    await write(tapped, TEXT, codec="opus", at_once=True)

    await speak(tapped)
    await spoken(tapped)

    assert await figures(tapped, "state", "codec", "samples", "rendered", "underruns", "dropped") == [
        "done", "opus", samples, samples, 0, 0,
    ]  # fmt: skip
    rendered = await heard(tapped)
    loud = int(np.argmax(np.abs(expected)))  # decoders round differently near silence: align where it is loud
    start = int(np.argmax(np.abs(rendered))) - loud
    assert np.max(np.abs(rendered[start : start + len(expected)] - expected)) < 2 / 32768
    assert np.max(np.abs(rendered[start + len(expected) :]), initial=0) < 2 / 32768
    assert complaints == []


async def test_words_arrive_one_by_one_and_are_marked_as_they_are_heard(url: str, page: Page, complaints: list[str]):
    await open_page(page, url)
    await write(page, TEXT)
    await page.evaluate("""
        globalThis.marked = [];
        const look = () => {
          const word = document.querySelector("#transcript mark")?.textContent;
          if (word && word !== marked.at(-1)) marked.push(word);
          requestAnimationFrame(look);
        };
        look();
    """)

    await page.keyboard.press("Control+Enter")
    await spoken(page)

    assert await page.evaluate("marked") == TEXT.split()
    for figure in ("First audio", "First sound"):
        await expect(page.locator("dl > div", has_text=figure)).to_have_text(re.compile(rf"{figure}\s*\d+ ms"))
    assert complaints == []


async def test_stop_is_silence_and_says_how_far_the_listener_was(url: str, page: Page, complaints: list[str]):
    await open_page(page, url)
    await write(page, TEXT * 10)
    await speak(page)
    await until(page, "voxgate.rendered > 24000")

    await page.keyboard.press("Escape")

    await expect(page.get_by_text("Heard: “…Hello there,")).to_be_visible()
    await expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    (at_once,) = await figures(page, "rendered")
    await page.wait_for_timeout(500)  # the time in which 12,000 more would have been rendered
    state, later = await figures(page, "state", "rendered")
    assert state == "stopped"
    assert later - at_once <= 2_400  # figures are up to 0.1 s old
    assert complaints == []


async def test_speaking_again_interrupts_and_is_heard_whole(url: str, page: Page, complaints: list[str]):
    await open_page(page, url)
    await write(page, TEXT * 10)
    await speak(page)
    await until(page, "voxgate.state === 'speaking'")

    await page.keyboard.press("Escape")
    await write(page, "Second thoughts.")
    await speak(page)
    await spoken(page)

    rendered, samples, underruns = await figures(page, "rendered", "samples", "underruns")
    assert rendered == samples
    assert underruns == 0
    assert complaints == []


async def test_without_https_the_page_still_speaks(url: str, page: Page, complaints: list[str]):
    await open_page(page, f"http://voxgate.test:{urlsplit(url).port}")
    assert await page.evaluate("globalThis.isSecureContext || Boolean(globalThis.AudioDecoder)") is False
    await page.get_by_label("Text", exact=True).fill(TEXT)

    await speak(page)
    await spoken(page)

    codec, rendered, samples, underruns = await figures(page, "codec", "rendered", "samples", "underruns")
    assert codec == "pcm_s16le"
    assert rendered == samples
    assert underruns == 0
    assert [complaint for complaint in complaints if "ScriptProcessorNode is deprecated" not in complaint] == []


async def test_text_that_cannot_be_spoken_is_answered_in_words(url: str, page: Page):
    await open_page(page, url)

    await write(page, "温度")
    await speak(page)
    await expect(page.get_by_text("This voice cannot speak this text.")).to_be_visible()

    await write(page, "… — *")
    await speak(page)
    await expect(page.get_by_text("There was nothing to speak in this text.")).to_be_visible()


@asynccontextmanager
async def house_filled(url: str) -> AsyncIterator[Context]:
    """Somebody else is being spoken to, slowly."""
    async with connect(url) as other:
        context = await other.start(lead_ms=0)
        await context.send(TEXT * 20)
        await context.end()
        async for event in context:
            if isinstance(event, Audio):
                break
        yield context


async def test_a_full_server_is_said_and_counted_down(page: Page):
    with running_server("--max-utterances", "1") as url:
        await open_page(page, url)
        async with house_filled(url) as context:
            await write(page, TEXT)
            await speak(page)

            await expect(page.get_by_text("The server is full. Try again in")).to_be_visible()
            await expect(page.get_by_role("button", name="Speak")).to_be_disabled()
            await context.cancel()
        await expect(page.get_by_role("button", name="Speak")).to_be_enabled(timeout=OVER_MS)
        await speak(page)
        await spoken(page)


async def test_a_server_that_is_full_from_the_start_is_not_taken_for_one_that_wants_a_key(page: Page):
    with running_server("--max-utterances", "1") as url:
        async with house_filled(url) as context:
            await page.goto(url)
            await expect(page.get_by_text("The server takes no more connections right now.")).to_be_visible()
            await context.cancel()
        await expect(page.get_by_text("Connected")).to_be_visible(timeout=OVER_MS)


async def test_a_server_that_wants_a_key_is_given_one(page: Page):
    with running_server("--keys", "correct horse") as url:
        await page.goto(url)
        await expect(page.get_by_text("The server wants an API key.")).to_be_visible(timeout=OVER_MS)
        await page.get_by_label("API key").fill("correct horse")
        await page.get_by_role("button", name="Connect").click()
        await expect(page.get_by_text("Connected")).to_be_visible()
        await expect(page.get_by_label("API key")).to_be_hidden()

        await page.reload()
        await expect(page.get_by_text("Connected")).to_be_visible()
        assert await page.evaluate("location.href") == f"{url}/"


async def test_a_lost_connection_is_said_and_comes_back(page: Page):
    with running_server() as url:
        await open_page(page, url)
    await expect(page.get_by_text("Trying again in")).to_be_visible(timeout=OVER_MS)
    await expect(page.get_by_role("button", name="Speak")).to_be_disabled()

    with running_server("--port", str(urlsplit(url).port)):
        await expect(page.get_by_text("Connected")).to_be_visible(timeout=OVER_MS)
        await write(page, "Back again.")
        await speak(page)
        await spoken(page)


@pytest.mark.parametrize("width", [320, 1200])
async def test_nothing_sticks_out_of_the_window(url: str, page: Page, width: int):
    await page.set_viewport_size({"width": width, "height": 800})
    await open_page(page, url)

    assert await page.evaluate("document.documentElement.scrollWidth") <= width
