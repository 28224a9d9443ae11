// The browser's sound output: one AudioContext, one node per stream. Knows samples, not codecs or messages.

import { Playout } from "./playout.js";

const IDLE_SECONDS = 20; // a running context keeps the sound device and a core awake
const BLOCKED_AFTER_MS = 300; // a context that may run is running by then
const SCRIPT_QUANTUM = 1024;

export class Speaker {
  #context = null;
  #module = null;
  #sinks = new Set();
  #idle = null;
  #onBlocked;

  /** `onBlocked(blocked)`: the browser holds sound back until the user acts. */
  constructor(onBlocked) {
    this.#onBlocked = onBlocked;
  }

  get rate() {
    return this.#context?.sampleRate;
  }

  /** Seconds between a sample leaving the page and its being heard. */
  get latency() {
    return this.#context?.outputLatency || this.#context?.baseLatency || 0;
  }

  get now() {
    return this.#context?.currentTime ?? 0;
  }

  /**
   * Makes sound possible, at `rate` Hz unless something is playing at another.
   * Call it inside a user gesture: browsers start no sound outside one.
   */
  unlock(rate) {
    this.#rest();
    if (this.#sinks.size === 0) this.#prepare(rate);
    // A promise of resume() may stay open for as long as sound is blocked; the state tells.
    this.#context.resume().catch(() => {});
    this.#watch();
  }

  /** Opens a play-out at `rate` Hz: {post(message, transfer), close()}. Reports of playout.js come to `onReport`. */
  open(rate, onReport) {
    this.#prepare(rate);
    this.#context.resume().catch(() => {});
    const context = this.#context;
    const sink = context.audioWorklet
      ? workletSink(context, this.#module, onReport)
      : scriptSink(context, onReport);
    const close = () => {
      sink.close();
      this.#sinks.delete(sink);
      this.#rest();
    };
    this.#sinks.add(sink);
    setTimeout(() => this.#watch(), BLOCKED_AFTER_MS);
    return { post: sink.post, close };
  }

  #prepare(rate) {
    if (this.#context && this.#context.sampleRate !== rate) this.#replace();
    if (!this.#context) {
      this.#context = new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
      this.#context.onstatechange = () => this.#watch();
      // Browsers have worklets only on https and localhost; elsewhere a ScriptProcessor does the same, worse.
      this.#module = this.#context.audioWorklet?.addModule(new URL("worklet.js", import.meta.url));
    }
  }

  #rest() {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#sinks.size === 0) this.#context?.suspend();
    }, IDLE_SECONDS * 1000);
  }

  #replace() {
    const old = this.#context;
    old.onstatechange = null;
    setTimeout(() => old.close(), 100); // lets a fade finish
    this.#context = null;
  }

  #watch() {
    this.#onBlocked(this.#sinks.size > 0 && this.#context.state !== "running");
  }
}

function workletSink(context, module, onReport) {
  let node = null;
  let waiting = []; // posted before the module was there; bounded by the server's pacing
  let closed = false;
  module.then(
    () => {
      if (closed) return;
      node = new AudioWorkletNode(context, "voxgate-playout", { numberOfInputs: 0, outputChannelCount: [1] });
      node.port.onmessage = ({ data }) => onReport(data);
      node.connect(context.destination);
      for (const [message, transfer] of waiting) node.port.postMessage(message, transfer);
      waiting = [];
    },
    (error) => onReport({ type: "broken", message: String(error) }),
  );
  return {
    post(message, transfer = []) {
      if (node) node.port.postMessage(message, transfer);
      else waiting.push([message, transfer]);
    },
    close() {
      closed = true;
      waiting = [];
      node?.disconnect();
    },
  };
}

function scriptSink(context, onReport) {
  const playout = new Playout(context.sampleRate, (report) => onReport({ ...report, at: context.currentTime }));
  const node = context.createScriptProcessor(SCRIPT_QUANTUM, 0, 1);
  node.onaudioprocess = ({ outputBuffer }) => playout.render(outputBuffer.getChannelData(0));
  node.connect(context.destination);
  return { post: (message) => playout.handle(message), close: () => node.disconnect() };
}
