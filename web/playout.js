// Play-out of one stream on the audio clock: a bounded ring of samples, read one render quantum at a time.
// Runs inside the worklet (or a ScriptProcessor, or a test); knows no codec, no page, no time but the samples it renders.

const RING_SECONDS = 30; // the server keeps at most lead_ms (2 s) ahead; more than this is a broken clock
const FADE_SECONDS = 0.005; // a cut shorter than this clicks
const PRIME_SECONDS = 0.06; // in hand before the first sample: three packets
const RESUME_SECONDS = 0.1; // in hand before going on after the ring ran dry
const REPORTS_PER_SECOND = 10;

/**
 * States: priming -> playing <-> dry; from any of them `stop` leads to stopped, and `end` with nothing left to finished.
 * `notify` gets {type, state, rendered, written, dropped, gaps, gapSamples} with type first, dry, resumed, finished,
 * stopped, or report (10 a second). Counts are in samples; `rendered` excludes silence that stands in for missing audio.
 */
export class Playout {
  #rate;
  #notify;
  #ring;
  #fade;
  #written = 0;
  #rendered = 0;
  #dropped = 0;
  #gaps = 0;
  #gapSamples = 0;
  #gap = 0; // samples of the gap that is open
  #state = "priming";
  #ended = false;
  #gainFrom = 0; // samples already faded in since the last hole
  #fadeIn = false;
  #fadeOutLeft = Infinity; // samples until silence, once stopped
  #last = 0; // last real sample: where a decay to silence starts
  #decayed = Infinity;
  #sinceReport = 0;

  constructor(rate, notify) {
    this.#rate = rate;
    this.#notify = notify;
    this.#ring = new Float32Array(Math.ceil(RING_SECONDS * rate));
    this.#fade = Math.round(FADE_SECONDS * rate);
  }

  handle(message) {
    if (message.type === "push") this.push(message.samples);
    else if (message.type === "end") this.end(message.total);
    else if (message.type === "stop") this.stop();
  }

  /** Appends samples; what does not fit in the ring is dropped and counted. */
  push(samples) {
    const fits = Math.min(samples.length, this.#ring.length - this.#available);
    const at = this.#written % this.#ring.length;
    const head = Math.min(fits, this.#ring.length - at);
    this.#ring.set(samples.subarray(0, head), at);
    this.#ring.set(samples.subarray(head, fits), 0);
    this.#written += fits;
    this.#dropped += samples.length - fits;
  }

  /** The stream is `total` samples long: what was appended beyond (padding of the last packet) is cut off. */
  end(total = Infinity) {
    this.#written = Math.max(this.#rendered, Math.min(this.#written, total - this.#dropped));
    this.#ended = true;
  }

  /** Falls silent within 5 ms; nothing more is rendered. */
  stop() {
    if (this.#over) return;
    if (this.#state === "playing") this.#fadeOutLeft = this.#fade;
    else {
      this.#closeGap();
      this.#finish("stopped");
    }
  }

  /** Fills `out`, one quantum, any length. Returns false when there is nothing more to do, ever. */
  render(out) {
    out.fill(0);
    if (this.#state === "priming" || this.#state === "dry") this.#tryStart();
    const heard = this.#state === "playing" ? this.#play(out) : 0;
    if (heard < out.length) this.#decay(out, heard);
    if (this.#state === "dry") this.#gap += out.length - heard;
    this.#sinceReport += out.length;
    if (this.#sinceReport >= this.#rate / REPORTS_PER_SECOND) this.#report("report");
    return !this.#over || this.#decayed < this.#fade;
  }

  get #available() {
    return this.#written - this.#rendered;
  }

  get #over() {
    return this.#state === "finished" || this.#state === "stopped";
  }

  #tryStart() {
    const first = this.#state === "priming";
    if (this.#ended && this.#available === 0) return this.#finish("finished");
    const needed = this.#rate * (first ? PRIME_SECONDS : RESUME_SECONDS);
    if (!this.#ended && this.#available < needed) return;
    this.#state = "playing";
    this.#fadeIn = !first;
    this.#gainFrom = 0;
    this.#closeGap();
    this.#report(first ? "first" : "resumed");
  }

  #play(out) {
    const count = Math.min(out.length, this.#available, this.#fadeOutLeft);
    for (let i = 0; i < count; i++) {
      let sample = this.#ring[(this.#rendered + i) % this.#ring.length];
      if (this.#fadeIn) sample *= raisedCosine(this.#gainFrom++ / this.#fade);
      if (this.#gainFrom === this.#fade) this.#fadeIn = false;
      if (this.#fadeOutLeft !== Infinity) sample *= raisedCosine((this.#fadeOutLeft - i) / this.#fade);
      out[i] = sample;
    }
    if (count > 0) this.#last = out[count - 1];
    this.#rendered += count;
    this.#fadeOutLeft -= count;
    this.#decayed = this.#fadeOutLeft === 0 ? this.#fade : 0;
    const stopping = this.#fadeOutLeft !== Infinity;
    if (this.#fadeOutLeft === 0 || (stopping && this.#available === 0)) this.#finish("stopped");
    else if (this.#available === 0 && this.#ended) this.#finish("finished");
    else if (count < out.length) {
      this.#state = "dry";
      this.#report("dry");
    }
    return count;
  }

  // From the last real sample to silence: without it the edge of a hole clicks.
  #decay(out, from) {
    for (let i = from; i < out.length && this.#decayed < this.#fade; i++) {
      out[i] = this.#last * raisedCosine(1 - ++this.#decayed / this.#fade);
    }
  }

  // A gap counts once audio goes on after it, or the listener gave up in it; a stream that ends in it had none.
  #closeGap() {
    if (this.#gap === 0) return;
    this.#gaps++;
    this.#gapSamples += this.#gap;
    this.#gap = 0;
  }

  #finish(state) {
    this.#state = state;
    this.#report(state);
  }

  #report(type) {
    this.#sinceReport = 0;
    this.#notify({
      type,
      state: this.#state,
      rendered: this.#rendered,
      written: this.#written,
      dropped: this.#dropped,
      gaps: this.#gaps,
      gapSamples: this.#gapSamples,
    });
  }
}

function raisedCosine(x) {
  return 0.5 - 0.5 * Math.cos(Math.PI * Math.max(0, Math.min(1, x)));
}
