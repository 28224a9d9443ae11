// The play-out on the browser's audio thread. Everything it does is in playout.js.

import { Playout } from "./playout.js";

class PlayoutProcessor extends AudioWorkletProcessor {
  constructor() {
    super();
    this.playout = new Playout(sampleRate, (report) => this.port.postMessage({ ...report, at: currentTime }));
    this.port.onmessage = ({ data }) => this.playout.handle(data);
  }

  process(_inputs, [[out]]) {
    return this.playout.render(out);
  }
}

registerProcessor("voxgate-playout", PlayoutProcessor);
