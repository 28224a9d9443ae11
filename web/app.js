// The page: what the user does, and what the user sees. Speaking itself is in speech.js, the connection in wire.js.

import { LeadChart } from "./chart.js";
import { opusOutputRate } from "./decode.js";
import { Speaker } from "./speaker.js";
import { Speech } from "./speech.js";
import { tokens } from "./text.js";
import { describeConnection, describeTrouble, milliseconds, seconds } from "./words.js";
import { Wire } from "./wire.js";

const RATE = 24000; // Hz asked for; the server says what it really sends
const ALL_AT_ONCE = 51; // last notch of the pace slider
const KEY = "voxgate.key";
const CODECS = { opus: "Opus", pcm_s16le: "PCM" };

const $ = (id) => document.getElementById(id);
const wire = new Wire({ message: route, audio: routeAudio, state: showConnection }, sessionStorage.getItem(KEY) ?? "");
const speaker = new Speaker(showBlocked);
const chart = new LeadChart($("lead-chart"));

let connection = { name: "connecting" };
let opusRate = null; // Hz; null: this browser cannot decode Opus
let speech = null; // the latest
let contexts = 0;
let soundBlocked = false;
let retryAt = 0; // before this (performance.now) the server would refuse again

// What the user does

function speak() {
  const text = $("text").value.toWellFormed?.() ?? $("text").value;
  if (connection.name !== "ready" || !text.trim() || performance.now() < retryAt) return;
  speech?.stop();
  unlock();
  speech = new Speech({ wire, speaker, opusRate, context: `page-${++contexts}`, text, perSecond: pace(), onChange: show });
  layOut(text);
  chart.start(() => (speech.state === "speaking" ? speech.lead : null));
  speech.begin({ voice: $("voice").value || undefined, codec: $("codec").value, sample_rate: RATE, speed: Number($("speed").value) });
  show();
  requestAnimationFrame(follow);
}

function stop() {
  speech?.stop();
}

function unlock() {
  speaker.unlock($("codec").value === "opus" ? opusRate : RATE);
}

function pace() {
  const value = Number($("pace").value);
  return value === ALL_AT_ONCE ? Infinity : value;
}

$("speak-form").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
$("stop").addEventListener("click", stop);
$("reconnect").addEventListener("click", () => wire.connect());
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, $("key").value);
  wire.connect($("key").value);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") stop();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat) {
    event.preventDefault();
    speak();
  }
});
$("pace").addEventListener("input", showSettings);
$("speed").addEventListener("input", showSettings);
// A phone call or a lock screen suspends sound; only coming back can resume it.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && speech && !speech.over) unlock();
});

// What the server says

function route(message) {
  if (message.type === "ready") return showVoices(message.voices);
  if (message.type === "error" && message.retry_after) retryAt = performance.now() + message.retry_after * 1000;
  if (speech && (message.context ?? message.about ?? speech.context) === speech.context) speech.receive(message);
}

function routeAudio(message) {
  speech?.receiveAudio(message);
}

// What the user sees

function showConnection(state) {
  if (connection.name === "ready" && state.name !== "ready") speech?.disconnected();
  connection = state;
  if (state.reason === "unauthorized" || state.reason === "refused") $("key-form").hidden = false;
  if (state.name === "ready") $("key-form").hidden = true;
  show();
}

function showVoices(voices) {
  const chosen = $("voice").value;
  const options = voices.map(({ id, language, tier }) => new Option(`${id} · ${language}${tier === "quality" ? " · quality" : ""}`, id));
  if (options.length === 0) options.push(new Option("default", ""));
  $("voice").replaceChildren(...options);
  if (voices.some(({ id }) => id === chosen)) $("voice").value = chosen;
}

function showBlocked(blocked) {
  soundBlocked = blocked;
  show();
}

function showSettings() {
  const speed = `${Number($("speed").value).toFixed(2)} ×`;
  const written = pace() === Infinity ? "all at once" : `${pace()} words/s`;
  $("speed-value").textContent = $("speed").ariaValueText = speed;
  $("pace-value").textContent = $("pace").ariaValueText = written;
}

function show() {
  const now = performance.now();
  const wait = connection.retryAt ? Math.max(0, Math.ceil((connection.retryAt - now) / 1000)) : 0;
  $("connection").dataset.state = connection.name;
  say($("connection-text"), describeConnection(connection) + (wait > 0 ? ` Trying again in ${wait} s.` : ""));
  $("reconnect").hidden = connection.name !== "waiting";
  $("speak").disabled = connection.name !== "ready" || now < retryAt;
  $("stop").disabled = !speech || speech.over;
  showMessage(now);
  if (speech) showFigures();
}

function showMessage(now) {
  const { sentence, detail, trouble } = currentMessage(now);
  say($("message"), sentence + (detail ? ` (${detail})` : ""));
  $("message").dataset.kind = trouble ? "trouble" : "news";
}

function currentMessage(now) {
  if (soundBlocked && speech && !speech.over) {
    return { sentence: "The browser is holding the sound back. Click anywhere on the page.", trouble: true };
  }
  if (speech?.trouble) {
    const { sentence, detail } = describeTrouble(speech.trouble);
    const wait = Math.ceil((retryAt - now) / 1000);
    return { sentence: sentence + (wait > 0 ? ` Try again in ${wait} s.` : ""), detail, trouble: true };
  }
  switch (speech?.state) {
    case "waiting":
      return { sentence: "Waiting for the first sound…" };
    case "speaking":
      return { sentence: "Speaking" };
    case "done":
      return { sentence: speech.samples === 0 ? "There was nothing to speak in this text." : "Spoken to the end." };
    case "stopped":
      return { sentence: `Stopped after ${seconds(speech.heardSeconds)}.` + (speech.heardText ? ` Heard: “…${tail(speech.heardText)}”` : "") };
    default:
      return { sentence: "" };
  }
}

function showFigures() {
  const { underruns, samples, rate } = speech;
  $("first-audio").textContent = milliseconds(speech.firstAudioMs);
  const words = tokens(speech.sentBefore).length;
  const given = speech.sentBefore === spoken ? "all of the text" : `${words} ${words === 1 ? "word" : "words"}`;
  $("first-audio-after").textContent = words ? `${given} sent by then` : "after the first word sent";
  $("first-sound").textContent = milliseconds(speech.firstSoundMs);
  $("underruns").textContent = underruns.count;
  $("underrun-seconds").textContent = underruns.count ? `${seconds(underruns.seconds, 2)} of silence in all` : "holes the server caused";
  $("heard").textContent = seconds(speech.heardSeconds);
  $("format").textContent = rate
    ? `${samples === null ? "" : `of ${seconds(samples / rate)}, `}${CODECS[speech.codec]} at ${rate / 1000} kHz` + (speech.dropped ? `, ${seconds(speech.dropped / rate)} dropped` : "")
    : "of what was synthesized";
  $("lead").textContent = speech.state === "speaking" ? seconds(speech.lead, 2) : "–";
}

// The text under the voice: heard, being heard, sent, not yet sent. The spans stay; only their text moves.

const parts = ["heard", "now", "sent", "unsent"].map((name) => {
  const part = document.createElement(name === "now" ? "mark" : "span");
  part.className = name;
  return part;
});
let spoken = "";

function layOut(text) {
  spoken = text;
  $("transcript").style.height = `${$("text").offsetHeight}px`;
  $("transcript").replaceChildren(...parts);
  $("transcript").scrollTop = 0;
  showTranscript(true);
}

function showTranscript(visible) {
  const [shown, hidden] = visible ? [$("transcript"), $("text")] : [$("text"), $("transcript")];
  const focused = document.activeElement === hidden;
  shown.hidden = false;
  hidden.hidden = true;
  if (focused) shown.focus();
}

function follow() {
  if (speech.over) {
    chart.stop();
    showTranscript(false);
    return show();
  }
  const [from, to] = speech.place ?? [0, 0];
  const sent = Math.max(to, speech.sent.length);
  const texts = [spoken.slice(0, from), spoken.slice(from, to), spoken.slice(to, sent), spoken.slice(sent)];
  parts.forEach((part, i) => say(part, texts[i]));
  keepInView(parts[1]);
  showFigures();
  requestAnimationFrame(follow);
}

function keepInView(mark) {
  const box = $("transcript");
  const below = mark.offsetTop + mark.offsetHeight - box.offsetTop - box.clientHeight;
  if (below > box.scrollTop) box.scrollTop = below + box.clientHeight / 2;
}

// Writing the same text again would make screen readers say it again.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tail(text, length = 60) {
  return text.length <= length ? text : text.slice(text.indexOf(" ", text.length - length) + 1);
}

// Start

async function begin() {
  showSettings();
  setInterval(show, 250); // countdowns
  opusRate = await opusOutputRate();
  if (opusRate === null) {
    $("codec").value = "pcm_s16le";
    $("codec").options[0].disabled = true;
    $("codec").options[0].text = "Opus (not in this browser)";
  }
  // The first click opens the sound device while the user is still finding the button.
  document.addEventListener("pointerdown", unlock);
  wire.connect();
}

// For tests, and for the curious: the latest speech in figures.
globalThis.voxgate = {
  get connection() {
    return connection.name;
  },
  get state() {
    return speech?.state ?? "idle";
  },
  get codec() {
    return speech?.codec ?? null;
  },
  get samples() {
    return speech?.samples ?? null;
  },
  get rendered() {
    return speech?.rendered ?? 0;
  },
  get underruns() {
    return speech?.underruns.count ?? 0;
  },
  get dropped() {
    return speech?.dropped ?? 0;
  },
  get ttfaMs() {
    return speech?.firstAudioMs ?? null;
  },
};

begin();
