import assert from "node:assert/strict";
import { test } from "node:test";

import { Playout } from "../../web/playout.js";

const RATE = 1000; // a sample is a millisecond: fade 5, prime 60, resume 100, ring 30,000
const QUANTUM = 8;

function playout() {
  const reports = [];
  const instance = new Playout(RATE, (report) => reports.push(report));
  const last = () => reports.at(-1);
  const types = () => reports.map(({ type }) => type).filter((type) => type !== "report");
  return { instance, last, types, reports };
}

const ramp = (length, from = 0) => Float32Array.from({ length }, (_, i) => (from + i + 1) / 65536); // never 0, exact in binary

function render(instance, samples) {
  const heard = [];
  for (let alive = true; alive && heard.length < samples; ) {
    const out = new Float32Array(QUANTUM).fill(9);
    alive = instance.render(out);
    heard.push(...out);
  }
  return heard;
}

const steepest = (samples) => Math.max(...samples.slice(1).map((sample, i) => Math.abs(sample - samples[i])));

test("what is pushed is rendered, sample for sample, then silence and the end", () => {
  const { instance, last, types } = playout();
  instance.push(ramp(50));
  instance.push(ramp(53, 50));
  instance.end(103);
  const heard = render(instance, 1000);
  assert.deepEqual(heard.slice(0, 103), [...ramp(103)]);
  assert.equal(heard.length, 112, "nothing is rendered after the last fade");
  assert.deepEqual(types(), ["first", "finished"]);
  assert.deepEqual({ ...last(), type: null, state: null }, { type: null, state: null, rendered: 103, written: 103, dropped: 0, gaps: 0, gapSamples: 0 });
});

test("rendering waits for 60 ms in hand, or for the end of a shorter stream", () => {
  const { instance, types } = playout();
  instance.push(ramp(59));
  assert.deepEqual(new Set(render(instance, 80)), new Set([0]));
  instance.end(59);
  assert.deepEqual(render(instance, 80).slice(0, 59), [...ramp(59)]);
  assert.deepEqual(types(), ["first", "finished"]);
});

test("the padding of the last packet is cut off at the announced length", () => {
  const { instance, last } = playout();
  instance.push(ramp(120));
  render(instance, 16);
  instance.end(100);
  const heard = render(instance, 1000);
  assert.deepEqual(heard.slice(0, 84), [...ramp(84, 16)]);
  assert.equal(last().rendered, 100);
});

test("an empty stream finishes without a sound", () => {
  const { instance, last, types } = playout();
  instance.end(0);
  assert.deepEqual(new Set(render(instance, 80)), new Set([0]));
  assert.deepEqual(types(), ["finished"]);
  assert.equal(last().rendered, 0);
});

test("running dry is counted when audio goes on, and no sample is lost", () => {
  const { instance, last, types } = playout();
  instance.push(new Float32Array(80).fill(0.5));
  render(instance, 160);
  assert.deepEqual(types(), ["first", "dry"]);
  assert.equal(last().gaps, 0);
  instance.push(new Float32Array(99).fill(0.5));
  render(instance, 40);
  assert.deepEqual(types(), ["first", "dry"], "not before 100 ms are in hand");
  instance.push(new Float32Array(1).fill(0.5));
  instance.end();
  render(instance, 1000);
  assert.deepEqual(types(), ["first", "dry", "resumed", "finished"]);
  assert.deepEqual([last().rendered, last().gaps, last().gapSamples], [180, 1, 120]);
});

test("the edges of a hole do not click", () => {
  const { instance } = playout();
  instance.push(new Float32Array(80).fill(0.5));
  const heard = render(instance, 120);
  instance.push(new Float32Array(100).fill(0.5));
  heard.push(...render(instance, 100));
  assert.ok(steepest(heard) < 0.2, `steepest step ${steepest(heard)}`); // half of 0.5 over 5 samples, raised cosine
  assert.equal(heard[100], 0);
});

test("a stream that ends in a hole had none", () => {
  const { instance, last } = playout();
  instance.push(ramp(80));
  render(instance, 160);
  instance.end(80);
  render(instance, 80);
  assert.deepEqual([last().type, last().gaps], ["finished", 0]);
});

test("stop is silent within 5 ms, without a click, and nothing follows", () => {
  const { instance, last } = playout();
  instance.push(new Float32Array(500).fill(0.5));
  const heard = render(instance, 80);
  instance.stop();
  const after = render(instance, 1000);
  assert.deepEqual(after.slice(5), new Array(after.length - 5).fill(0));
  assert.ok(steepest([...heard.slice(64), ...after]) < 0.2);
  assert.deepEqual([last().type, last().rendered], ["stopped", 85]);
  instance.push(new Float32Array(500).fill(0.5));
  assert.deepEqual(new Set(render(instance, 80)), new Set([0]));
  assert.equal(last().rendered, 85);
});

test("stop before the first sample, and stop in a hole, are immediate", () => {
  const early = playout();
  early.instance.push(ramp(10));
  early.instance.stop();
  assert.deepEqual([early.last().type, early.last().rendered], ["stopped", 0]);

  const dry = playout();
  dry.instance.push(ramp(80));
  render(dry.instance, 120);
  dry.instance.stop();
  assert.deepEqual([dry.last().type, dry.last().gaps], ["stopped", 1], "the listener gave up in a hole");
});

test("a ring that is full drops what does not fit, and counts it", () => {
  const { instance, last } = playout();
  instance.push(ramp(29_000));
  instance.push(ramp(2_000, 29_000));
  instance.end(31_000);
  const heard = render(instance, 40_000);
  assert.deepEqual([last().rendered, last().dropped], [30_000, 1_000]);
  assert.deepEqual(heard.slice(29_990, 30_000), [...ramp(10, 29_990)]);
});

test("the ring wraps around without a seam", () => {
  const { instance } = playout();
  const heard = [];
  for (let from = 0; from < 45_000; from += 900) {
    instance.push(ramp(900, from));
    heard.push(...render(instance, 880));
  }
  instance.end(45_000);
  heard.push(...render(instance, 2_000));
  assert.deepEqual(heard.slice(0, 45_000), [...ramp(45_000)]);
});

test("reports come ten times a second", () => {
  const { instance, reports } = playout();
  instance.push(ramp(2000));
  render(instance, 1600);
  assert.equal(reports.length, 16);
});
