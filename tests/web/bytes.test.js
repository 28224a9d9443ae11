import assert from "node:assert/strict";
import { test } from "node:test";

import { base64url, floatsFromPcm, opusPackets, parseAudioMessage } from "../../web/bytes.js";

test("header is read in network byte order and the payload follows it", () => {
  const message = new Uint8Array([1, 1, 0x01, 0x02, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 5, 42, 43]);
  const { payload, ...header } = parseAudioMessage(message.buffer);
  assert.deepEqual(header, { first: true, stream: 258, sequence: 7, start: 2 ** 32 + 5 });
  assert.deepEqual([...payload], [42, 43]);
});

test("a message of another version, or shorter than a header, is refused", () => {
  assert.throws(() => parseAudioMessage(new ArrayBuffer(15)), RangeError);
  assert.throws(() => parseAudioMessage(new Uint8Array(16).fill(2).buffer), RangeError);
});

test("Opus packets are split by their lengths", () => {
  const packets = opusPackets(new Uint8Array([0, 2, 10, 11, 0, 1, 12]));
  assert.deepEqual(packets.map((packet) => [...packet]), [[10, 11], [12]]);
  assert.deepEqual(opusPackets(new Uint8Array(0)), []);
});

test("a torn list of Opus packets is refused", () => {
  assert.throws(() => opusPackets(new Uint8Array([0, 3, 10, 11])), RangeError);
  assert.throws(() => opusPackets(new Uint8Array([0])), RangeError);
});

test("pcm_s16le becomes floats, from any byte offset", () => {
  const bytes = new Uint8Array([9, 0x00, 0x80, 0xff, 0x7f, 0x00, 0x40]);
  assert.deepEqual([...floatsFromPcm(bytes.subarray(1))], [-1, 32767 / 32768, 0.5]);
});

test("a key becomes a token that a subprotocol may be", () => {
  assert.equal(base64url("a?~>ü"), "YT9-PsO8");
  assert.equal(base64url("k"), "aw");
});
