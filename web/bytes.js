// The byte formats of voxgate.v1: audio message header, Opus packet list, key as a subprotocol.
// Knows no socket and no audio.

const HEADER_BYTES = 16; // network byte order !BBHIQ
const VERSION = 1;

/** Splits a binary message into its header and a view (no copy) of its payload. Throws RangeError if it is neither. */
export function parseAudioMessage(buffer) {
  if (buffer.byteLength < HEADER_BYTES) throw new RangeError("audio message shorter than its header");
  const view = new DataView(buffer);
  if (view.getUint8(0) !== VERSION) throw new RangeError(`audio message of version ${view.getUint8(0)}`);
  return {
    first: (view.getUint8(1) & 1) === 1,
    stream: view.getUint16(2),
    sequence: view.getUint32(4),
    start: Number(view.getBigUint64(8)),
    payload: new Uint8Array(buffer, HEADER_BYTES),
  };
}

/** The packets of an `opus` payload: each is preceded by its length as uint16. Throws RangeError on a torn list. */
export function opusPackets(payload) {
  const packets = [];
  for (let at = 0; at < payload.length; ) {
    const length = (payload[at] << 8) | payload[at + 1];
    const end = at + 2 + length;
    if (!(end <= payload.length)) throw new RangeError("Opus packet longer than its message");
    packets.push(payload.subarray(at + 2, end));
    at = end;
  }
  return packets;
}

/** pcm_s16le to floats in [-1, 1). Payloads hold whole samples only. */
export function floatsFromPcm(payload) {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const floats = new Float32Array(payload.byteLength >> 1);
  for (let i = 0; i < floats.length; i++) floats[i] = view.getInt16(2 * i, true) / 32768;
  return floats;
}

/** base64url without padding (RFC 4648 §5) of the UTF-8 of `text`: valid in a subprotocol name. */
export function base64url(text) {
  const latin1 = String.fromCharCode(...new TextEncoder().encode(text));
  return btoa(latin1).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
