// For the tests of the page: writes down, block by block, what reaches the loudspeaker.

class Tap extends AudioWorkletProcessor {
  #block = [];

  process([[channel]]) {
    if (channel) this.#block.push(...channel);
    if (this.#block.length >= 8192) this.#send();
    return true;
  }

  constructor() {
    super();
    this.port.onmessage = () => this.#send();
  }

  #send() {
    this.port.postMessage(this.#block);
    this.#block = [];
  }
}

registerProcessor("tap", Tap);
