import assert from "node:assert/strict";
import { test } from "node:test";

import { describeConnection, describeTrouble } from "../../web/words.js";

test("a known error is said in the page's words, the server's own beside it", () => {
  assert.deepEqual(describeTrouble({ type: "error", code: "overloaded", message: "queue full" }), {
    sentence: "The server is full.",
    detail: "queue full",
  });
});

test("an unknown error is said in the server's words, or by its code", () => {
  assert.equal(describeTrouble({ type: "error", code: "new", message: "Something new." }).sentence, "Something new.");
  assert.match(describeTrouble({ type: "error", code: "new" }).sentence, /new/);
});

test("every state of a connection has a sentence", () => {
  for (const reason of ["unreachable", "starting", "unauthorized", "busy", "refused", "closed"]) {
    assert.match(describeConnection({ name: "waiting", reason, code: 1006 }), /\.$/);
  }
  assert.match(describeConnection({ name: "waiting", reason: "closed", code: 4408 }), /slow/);
});
