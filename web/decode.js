// Payloads of audio messages to floats. The ladder: WebCodecs Opus where the browser has it, else the server is asked for PCM.

import { floatsFromPcm, opusPackets } from "./bytes.js";

// 20 ms of silence, 48 kHz mono (a CELT frame, RFC 6716 §3.1): asks a decoder what it really does.
const SILENT_PACKET = new Uint8Array([0xf8, 0xff, 0xfe]);
// No description (an OpusHead): then decoders take bare packets and leave pre-skip to us.
const OPUS = { codec: "opus", sampleRate: 48000, numberOfChannels: 1 };

/** The rate in Hz at which this browser decodes Opus, or null if it cannot. */
export async function opusOutputRate() {
  if (!globalThis.AudioDecoder) return null;
  let rate = null;
  try {
    if (!(await AudioDecoder.isConfigSupported(OPUS)).supported) return null;
    const decoder = new AudioDecoder({
      output: (data) => {
        rate = data.sampleRate;
        data.close();
      },
      error: () => {},
    });
    decoder.configure(OPUS);
    decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: 0, data: SILENT_PACKET }));
    await decoder.flush();
    decoder.close();
  } catch {
    return null; // it said it could and could not
  }
  return rate;
}

/** Opus packets of one context to floats at the decoder's own rate, `skip` samples of that rate dropped at the start. */
export class OpusDecoder {
  #decoder;
  #skip;
  #timestamp = 0;

  constructor(skip, onSamples, onError) {
    this.#skip = skip;
    this.#decoder = new AudioDecoder({ output: (data) => onSamples(this.#take(data)), error: onError });
    this.#decoder.configure(OPUS);
  }

  push(payload) {
    for (const data of opusPackets(payload)) {
      this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: this.#timestamp, data }));
      this.#timestamp += 20_000; // µs; only has to grow
    }
  }

  /** Resolves when everything pushed has come out. */
  flush() {
    return this.#decoder.flush();
  }

  close() {
    if (this.#decoder.state !== "closed") this.#decoder.close();
  }

  #take(data) {
    const samples = new Float32Array(data.numberOfFrames);
    data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
    data.close();
    const skipped = Math.min(this.#skip, samples.length);
    this.#skip -= skipped;
    return skipped ? samples.slice(skipped) : samples;
  }
}

/** pcm_s16le of one context to floats. */
export class PcmDecoder {
  #onSamples;

  constructor(onSamples) {
    this.#onSamples = onSamples;
  }

  push(payload) {
    this.#onSamples(floatsFromPcm(payload));
  }

  async flush() {}

  close() {}
}
