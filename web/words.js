// What the page says about errors and connections, in sentences. Pure.

const ERRORS = {
  overloaded: "The server is full.",
  rate_limited: "Too many requests for this key.",
  unauthorized: "The server does not accept this API key.",
  unknown_voice: "The server does not know this voice.",
  unsupported_codec: "The server cannot send this codec.",
  unsupported_text: "This voice cannot speak this text.",
  text_too_long: "The text is too long for the server.",
  too_many_contexts: "Too many texts at once on this connection.",
  voice_loading: "The voice is still loading.",
  engine_failed: "The voice failed while speaking.",
  slow_reader: "This connection is too slow for the audio.",
  idle: "The server gave up waiting for text.",
  internal: "Something went wrong in the server.",
  disconnected: "The connection was lost.",
  out_of_sequence: "Audio went missing on the way.",
  no_sound: "This browser could not play the audio.",
};

const CLOSES = {
  1001: "The server is restarting.",
  1008: "The server ended the connection: not allowed.",
  1009: "The server ended the connection: message too large.",
  1011: "The server ended the connection after an internal error.",
  1012: "The server is restarting.",
  1013: "The server is full.",
  4408: "The server ended the connection: it is too slow for the audio.",
};

const REFUSALS = {
  unreachable: "No answer from the server.",
  starting: "The server is loading its voices.",
  unauthorized: "The server wants an API key.",
  busy: "The server takes no more connections right now.",
  refused: "The server refused the connection; it may want an API key.",
};

/** Sentence for an `error` or `warning` message, and the server's own words if they add to it. */
export function describeTrouble({ type, code, message, span }) {
  if (type === "warning" && code === "unsupported_text") {
    return { sentence: "Some of the text is in a script this voice cannot speak, and was left out.", detail: message, span };
  }
  return { sentence: ERRORS[code] ?? message ?? `The server reports “${code}”.`, detail: ERRORS[code] ? message : null };
}

/** Sentence for a connection state of wire.js, without its countdown. */
export function describeConnection({ name, reason, code }) {
  if (name === "ready") return "Connected";
  if (name === "connecting") return "Connecting…";
  if (reason === "closed") return CLOSES[code] ?? "The connection was lost.";
  return REFUSALS[reason];
}

export function seconds(value, digits = 1) {
  return `${value.toFixed(digits)} s`;
}

export function milliseconds(value) {
  return value === null ? "–" : `${Math.round(value)} ms`;
}
