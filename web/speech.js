// One context on the page, from the first word sent to the last sample heard. Knows the wire's messages and no DOM.

import { Player } from "./player.js";
import { Follower, serverOwesAudio, Writer } from "./text.js";

const PLAYED_EVERY_MS = 1000;

/**
 * `state`: waiting (no sound yet), speaking, done (all of it heard), stopped (by the listener), failed.
 * `onChange()` after every change a viewer could see; `trouble` then holds the server's last error or warning.
 */
export class Speech {
  context; // its id on the wire
  state = "waiting";
  trouble = null;
  samples = null; // length of the context, once the server said it
  heardText = null; // what the server takes as heard, after a stop
  firstAudioMs = null; // first text message -> first audio message
  sentBefore = ""; // of the text, when that came
  firstSoundMs = null; // first text message -> first sample rendered
  underruns = { count: 0, seconds: 0 };
  sent = ""; // of the text, so far

  #wire;
  #speaker;
  #opusRate;
  #onChange;
  #heardAtStop = null; // samples
  #writer;
  #perSecond;
  #ended = false; // `end` is sent
  #follower;
  #started = null;
  #player = null;
  #sequence = 0;
  #firstTextAt = 0;
  #timers = [];
  #counted = { gaps: 0, seconds: 0 }; // gaps already judged
  #owed = false; // whether the open gap is the server's

  constructor({ wire, speaker, opusRate, context, text, perSecond, onChange }) {
    this.#wire = wire;
    this.#speaker = speaker;
    this.#opusRate = opusRate;
    this.context = context;
    this.#onChange = onChange;
    this.#writer = new Writer(text, perSecond);
    this.#perSecond = perSecond;
    this.#follower = new Follower(text);
  }

  /** `settings`: voice, codec, sample_rate, speed of `start`. */
  begin(settings) {
    this.#wire.send({ type: "start", context: this.context, timestamps: true, ...settings });
    this.#firstTextAt = performance.now();
    this.#write();
    if (!this.#writer.finished) this.#every(1000 / this.#perSecond, () => this.#write());
    this.#every(PLAYED_EVERY_MS, () => this.#reportPlayed());
  }

  /** The listener has had enough: silence at once, and the server is told how much was heard. */
  stop() {
    if (this.over) return;
    if (this.#player) this.#heardAtStop = this.#player.heard;
    this.#wire.send({ type: "cancel", context: this.context, played: this.#heardAtStop ?? undefined });
    this.#player?.stop();
    this.#finish("stopped");
  }

  /** The connection went: what has arrived is still played. */
  disconnected() {
    if (this.over) return;
    this.#fail({ code: "disconnected" });
  }

  get over() {
    return this.state === "done" || this.state === "stopped" || this.state === "failed";
  }

  get rendered() {
    return this.#player?.rendered ?? 0;
  }

  get heardSeconds() {
    return this.#player ? (this.#heardAtStop ?? this.#player.heard) / this.#started.sample_rate : 0;
  }

  get lead() {
    return this.#player?.lead ?? 0;
  }

  get dropped() {
    return this.#player?.dropped ?? 0;
  }

  get codec() {
    return this.#started?.codec ?? null;
  }

  get rate() {
    return this.#started?.sample_rate ?? null;
  }

  /** [from, to] of the word being heard, indexes in the text; null while the server has given no words. */
  get place() {
    return this.#follower.known ? this.#follower.at(this.heardSeconds) : null;
  }

  receive(message) {
    if (this.over && message.type !== "cancelled") return; // was on its way when the speech ended here
    switch (message.type) {
      case "started":
        this.#started = message;
        this.#player = new Player(this.#speaker, message, this.#opusRate, (type, detail) => this.#played(type, detail));
        break;
      case "words":
        this.#follower.add(message.words);
        break;
      case "done":
        this.samples = message.samples;
        this.#player.end(message.samples);
        break;
      case "cancelled":
        this.heardText = message.text;
        break;
      case "warning":
        this.trouble = message;
        break;
      case "error":
        if (message.context === this.context) this.#fail(message);
        else this.trouble = message;
    }
    this.#onChange();
  }

  /** Takes an audio message; false if it is another context's. */
  receiveAudio({ stream, sequence, payload }) {
    if (stream !== this.#started?.stream) return false;
    if (this.over) return true; // was on its way when the listener stopped
    if (sequence !== this.#sequence++) this.#fail({ code: "out_of_sequence" });
    if (this.firstAudioMs === null) {
      this.firstAudioMs = performance.now() - this.#firstTextAt;
      this.sentBefore = this.sent;
    }
    this.#player.push(payload);
    this.#onChange();
    return true;
  }

  #write() {
    const elapsed = (performance.now() - this.#firstTextAt) / 1000;
    for (const text of this.#writer.due(elapsed)) {
      this.#wire.send({ type: "text", context: this.context, text });
      this.sent += text;
    }
    if (this.#writer.finished && !this.#ended) {
      this.#ended = true;
      this.#wire.send({ type: "end", context: this.context });
    }
    this.#onChange();
  }

  #played(type, detail) {
    if (this.over) return;
    if (type === "failed") return this.#fail({ code: "no_sound", message: detail });
    if (type === "first") {
      this.firstSoundMs = performance.now() - this.#firstTextAt;
      this.state = "speaking";
    }
    if (type === "dry") {
      this.#owed = serverOwesAudio({ sent: this.sent, spokenTo: this.#follower.spokenTo, ended: this.#ended });
    }
    if (type === "resumed") this.#judgeGap();
    if (type === "finished") {
      this.#reportPlayed();
      this.#finish("done");
    }
    this.#onChange();
  }

  #judgeGap() {
    const { gaps, gapSeconds } = this.#player;
    if (this.#owed) {
      this.underruns.count += gaps - this.#counted.gaps;
      this.underruns.seconds += gapSeconds - this.#counted.seconds;
    }
    this.#counted = { gaps, seconds: gapSeconds };
  }

  #reportPlayed() {
    if (this.#player && this.state !== "waiting") {
      this.#wire.send({ type: "played", context: this.context, samples: this.#player.heard });
    }
  }

  #fail(error) {
    this.trouble = error;
    this.#player?.end();
    this.#finish("failed");
  }

  #finish(state) {
    this.state = state;
    this.#timers.forEach(clearInterval);
    this.#onChange();
  }

  #every(milliseconds, action) {
    this.#timers.push(setInterval(action, Math.max(4, milliseconds)));
  }
}
