// One context's audio from payload to loudspeaker: decoder, play-out, and where the listener is.
// Everything it tells is in samples or seconds of the stream, whatever rate the browser works at.

import { OpusDecoder, PcmDecoder } from "./decode.js";

export class Player {
  #speaker;
  #rate; // of the stream
  #scale; // output samples per stream sample
  #decoder;
  #sink;
  #pushed = 0; // output samples handed to the play-out
  #report = { type: "none", state: "priming", rendered: 0, written: 0, dropped: 0, gaps: 0, gapSamples: 0, at: 0 };
  #onEvent;

  /**
   * `started` is the server's message; `opusRate` the rate opusOutputRate() found.
   * `onEvent(type, detail)`: first, dry, resumed, finished, stopped, report, or failed with a reason.
   */
  constructor(speaker, started, opusRate, onEvent) {
    this.#speaker = speaker;
    this.#onEvent = onEvent;
    this.#rate = started.sample_rate;
    const opus = started.codec === "opus";
    const outputRate = opus ? opusRate : this.#rate;
    this.#scale = outputRate / this.#rate;
    const take = (samples) => this.#take(samples);
    this.#decoder = opus
      ? new OpusDecoder(started.pre_skip * this.#scale, take, (error) => onEvent("failed", error.message))
      : new PcmDecoder(take);
    this.#sink = speaker.open(outputRate, (report) => this.#hear(report));
  }

  push(payload) {
    this.#decoder.push(payload);
  }

  /** No more will come; the stream is `samples` long (all that came, if not given). */
  async end(samples = Infinity) {
    try {
      await this.#decoder.flush();
    } catch (error) {
      if (error.name !== "AbortError") this.#onEvent("failed", error.message); // aborted: stopped meanwhile
    }
    this.#sink.post({ type: "end", total: samples * this.#scale });
  }

  /** Silence within 5 ms. */
  stop() {
    this.#decoder.close();
    this.#sink.post({ type: "stop" });
  }

  /** Samples rendered so far, as last reported. */
  get rendered() {
    return Math.round(this.#report.rendered / this.#scale);
  }

  /** Samples the listener has heard by now. */
  get heard() {
    const { rendered, state, at } = this.#report;
    const since = state === "playing" ? (this.#speaker.now - at) * this.#speaker.rate : 0;
    const inFlight = state === "finished" ? 0 : this.#speaker.latency * this.#speaker.rate;
    const heard = Math.min(rendered + Math.max(0, since), this.#pushed) - inFlight;
    return Math.max(0, Math.floor(heard / this.#scale));
  }

  /** Seconds of audio in hand. */
  get lead() {
    const { rendered, dropped, state, at } = this.#report;
    const since = state === "playing" ? (this.#speaker.now - at) * this.#speaker.rate : 0;
    return Math.max(0, this.#pushed - dropped - rendered - since) / this.#speaker.rate;
  }

  get dropped() {
    return Math.round(this.#report.dropped / this.#scale);
  }

  get gaps() {
    return this.#report.gaps;
  }

  get gapSeconds() {
    return this.#report.gapSamples / this.#scale / this.#rate;
  }

  #take(samples) {
    if (samples.length === 0) return;
    this.#pushed += samples.length;
    this.#sink.post({ type: "push", samples }, [samples.buffer]);
  }

  #hear(report) {
    if (report.type === "broken") return this.#onEvent("failed", report.message);
    this.#report = report;
    if (report.type === "finished" || report.type === "stopped") {
      this.#decoder.close();
      setTimeout(() => this.#sink.close(), 100); // the last 5 ms are still fading
    }
    this.#onEvent(report.type);
  }
}
