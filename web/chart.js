// The lead over the last half minute, drawn on a canvas in its own text colour.

const SAMPLES = 300;
const EVERY_MS = 100;
const GRID_SECONDS = 1;

export class LeadChart {
  #canvas;
  #values = [];
  #timer = null;

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.#draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /** Samples `read()` (seconds, or null where there is nothing to read) ten times a second until `stop`. */
  start(read) {
    this.stop();
    this.#timer = setInterval(() => {
      this.#values.push(read());
      if (this.#values.length > SAMPLES) this.#values.shift();
      this.#draw();
    }, EVERY_MS);
  }

  stop() {
    if (this.#timer !== null) this.#values.push(null); // a break between two texts
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const ratio = devicePixelRatio || 1;
    this.#canvas.width = width * ratio;
    this.#canvas.height = height * ratio;
    const pen = this.#canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.strokeStyle = pen.fillStyle = getComputedStyle(this.#canvas).color;
    const top = Math.max(2.5, ...this.#values); // null counts as 0
    const y = (value) => height - 1 - (value / top) * (height - 6);
    const x = (index) => width - (this.#values.length - 1 - index) * (width / (SAMPLES - 1));

    pen.globalAlpha = 0.15;
    for (let grid = GRID_SECONDS; grid < top; grid += GRID_SECONDS) pen.fillRect(0, Math.round(y(grid)), width, 1);
    pen.globalAlpha = 0.8;
    pen.font = "11px system-ui, sans-serif";
    for (let grid = GRID_SECONDS; grid < top; grid += GRID_SECONDS) pen.fillText(`${grid} s`, 6, y(grid) + 13);
    for (const run of runs(this.#values)) {
      pen.beginPath();
      for (const index of run) pen.lineTo(x(index), y(this.#values[index]));
      pen.globalAlpha = 1;
      pen.lineWidth = 1.5;
      pen.stroke();
      pen.lineTo(x(run.at(-1)), height);
      pen.lineTo(x(run[0]), height);
      pen.globalAlpha = 0.15;
      pen.fill();
    }
  }
}

function runs(values) {
  const found = [];
  values.forEach((value, index) => {
    if (value === null) return;
    if (index > 0 && values[index - 1] !== null) found.at(-1).push(index);
    else found.push([index]);
  });
  return found;
}
