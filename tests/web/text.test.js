import assert from "node:assert/strict";
import { test } from "node:test";

import { codePointIndexes, Follower, serverOwesAudio, tokens, Writer } from "../../web/text.js";

test("tokens joined are the text, whatever the text", () => {
  for (const text of ["", " ", "Hello, world.", "  two  spaces\n\nlines \t", "温度36.5℃。好的 OK？", "a 😊 b", "ภาษาไทย"]) {
    assert.equal(tokens(text).join(""), text);
  }
});

test("words keep the space before them; unspaced scripts go by character", () => {
  assert.deepEqual(tokens("Say it, now. "), ["Say", " it,", " now.", " "]);
  assert.deepEqual(tokens("好的OK"), ["好", "的", "OK"]);
});

test("a writer gives its first word at once and the others at its pace", () => {
  const writer = new Writer("one two three four", 2);
  assert.deepEqual(writer.due(0), ["one"]);
  assert.deepEqual(writer.due(0.4), []);
  assert.deepEqual(writer.due(0.5), [" two"]);
  assert.equal(writer.finished, false);
  assert.deepEqual(writer.due(9), [" three", " four"]);
  assert.equal(writer.finished, true);
  assert.deepEqual(writer.due(10), []);
});

test("a writer without a pace gives the whole text as one", () => {
  const writer = new Writer("one two three", Infinity);
  assert.deepEqual(writer.due(0), ["one two three"]);
  assert.equal(writer.finished, true);

  const long = "😊".repeat(10_000);
  const pieces = new Writer(long, Infinity).due(0);
  assert.deepEqual([pieces.length, pieces.join("") === long], [2, true]);
  assert.ok(pieces.every((piece) => piece.isWellFormed()));
});

test("code points are found behind astral characters", () => {
  assert.deepEqual(codePointIndexes("a😊b"), [0, 1, 3, 4]);
});

test("a follower marks the word being heard, and nothing in a pause", () => {
  const follower = new Follower("😊 Hello, world.");
  follower.add([["Hello,", 0.1, 0.5, 2]]);
  follower.add([["world.", 1.0, 1.4, 9]]);
  assert.deepEqual(follower.at(0.05), [0, 0]);
  assert.deepEqual(follower.at(0.2), [3, 9]);
  assert.deepEqual(follower.at(0.9), [9, 9]);
  assert.deepEqual(follower.at(1.2), [10, 16]);
  assert.deepEqual(follower.at(5), [16, 16]);
  assert.equal(follower.spokenTo, 16);
});

test("silence is the server's doing only while it holds something it may speak", () => {
  const sent = "One is done. Two is";
  assert.equal(serverOwesAudio({ sent, spokenTo: 12, ended: false }), false, "an unfinished sentence");
  assert.equal(serverOwesAudio({ sent, spokenTo: 0, ended: false }), true, "a finished one");
  assert.equal(serverOwesAudio({ sent, spokenTo: 12, ended: true }), true, "whatever is left at the end");
  assert.equal(serverOwesAudio({ sent: "Done. — *", spokenTo: 5, ended: true }), false, "nothing speakable");
});
