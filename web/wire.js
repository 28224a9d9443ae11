// The connection: one WebSocket to v1/stream beside the page, reopened when it goes. Knows no context and no sound.

import { base64url, parseAudioMessage } from "./bytes.js";

const FIRST_RETRY_SECONDS = 0.5;
const LAST_RETRY_SECONDS = 15;

/**
 * `on` holds: message(object), audio({first, stream, sequence, start, payload}), and
 * state({name, reason, retryAt}) with name connecting, ready, or waiting; `reason` one of
 * unreachable, starting, unauthorized, busy, refused, closed (with `code`); retryAt in performance.now() ms.
 */
export class Wire {
  #on;
  #key;
  #socket = null;
  #ready = false; // this connection has said `ready`
  #failures = 0;
  #timer = null;

  constructor(on, key = "") {
    this.#on = on;
    this.#key = key;
  }

  /** Connects now, whatever it was waiting for; with `key` from here on, if given. */
  connect(key = this.#key) {
    this.#key = key;
    clearTimeout(this.#timer);
    this.#drop();
    const url = new URL("v1/stream", document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const protocols = ["voxgate.v1"];
    if (this.#key) protocols.push(`voxgate.key.${base64url(this.#key)}`);
    const socket = new WebSocket(url, protocols);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.#receive(socket, data);
    socket.onclose = ({ code }) => this.#closed(socket, code);
    this.#socket = socket;
    this.#ready = false;
    this.#on.state({ name: "connecting" });
  }

  send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #receive(socket, data) {
    if (typeof data !== "string") return this.#on.audio(parseAudioMessage(data));
    const message = JSON.parse(data);
    if (message.type === "ready" && socket === this.#socket) {
      this.#ready = true;
      this.#failures = 0;
      this.#on.state({ name: "ready" });
    }
    this.#on.message(message);
  }

  async #closed(socket, code) {
    if (socket !== this.#socket) return;
    const { reason, retryAfter } = this.#ready ? { reason: "closed" } : await this.#whyRefused();
    if (socket !== this.#socket) return; // reconnected meanwhile
    const backOff = Math.min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** this.#failures++);
    const seconds = Math.max(retryAfter ?? 0, backOff * (0.75 + Math.random() / 2)); // spread out after a restart
    this.#on.state({ name: "waiting", reason, code, retryAt: performance.now() + seconds * 1000 });
    this.#timer = setTimeout(() => this.connect(), seconds * 1000);
  }

  // A browser hides why a handshake failed; a plain request to the same server shows it.
  async #whyRefused() {
    const headers = this.#key ? { Authorization: `Bearer ${this.#key}` } : {};
    try {
      const ready = await fetch(new URL("health/ready", document.baseURI), { cache: "no-store" });
      if (ready.status === 503) return { reason: "starting" };
      const reply = await fetch(new URL("v1/voices", document.baseURI), { headers, cache: "no-store" });
      const retryAfter = Number(reply.headers.get("Retry-After")) || undefined;
      if (reply.status === 401 || reply.status === 403) return { reason: "unauthorized" };
      if (reply.status === 429 || reply.status === 503) return { reason: "busy", retryAfter };
      const { full, retry_after } = await ready.json();
      if (full) return { reason: "busy", retryAfter: retry_after };
      return { reason: "refused" };
    } catch {
      return { reason: "unreachable" };
    }
  }

  #drop() {
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close(1000);
  }
}
