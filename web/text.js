// Text as a language model writes it, and the offsets the wire counts it in. Pure: time comes in as an argument.

// A word with the spaces before it; scripts written without spaces go character by character.
const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}";
const TOKEN = new RegExp(`\\s*(?:[${UNSPACED}]|[^\\s${UNSPACED}]+)|\\s+$`, "gu");

/** Tokens whose concatenation is `text`. */
export function tokens(text) {
  return text.match(TOKEN) ?? [];
}

// All at once, in messages well below any server's limit; whole code points.
const PIECE = /[^]{1,8192}/gu;

/** Hands out a text token by token at `perSecond`; Infinity means all of it at once. */
export class Writer {
  #tokens;
  #perSecond;
  #given = 0;

  constructor(text, perSecond) {
    this.#tokens = (perSecond === Infinity ? text.match(PIECE) : tokens(text)) ?? [];
    this.#perSecond = perSecond;
  }

  get finished() {
    return this.#given === this.#tokens.length;
  }

  /** The tokens that are due `elapsed` seconds after the first: late timers catch up. */
  due(elapsed) {
    const since = this.#perSecond === Infinity ? Infinity : Math.floor(elapsed * this.#perSecond + 1e-6);
    const until = Math.min(this.#tokens.length, since + 1);
    const due = this.#tokens.slice(this.#given, until);
    this.#given = Math.max(this.#given, until);
    return due;
  }
}

/** Index in `text` (UTF-16) of every code point, and of its end: the wire counts code points. */
export function codePointIndexes(text) {
  const indexes = [];
  let at = 0;
  for (const point of text) {
    indexes.push(at);
    at += point.length;
  }
  indexes.push(at);
  return indexes;
}

/** Where a listener is in a text, from the `words` of a context and the instant heard. */
export class Follower {
  #text;
  #indexes;
  #words = [];
  #passed = 0;

  constructor(text) {
    this.#text = text;
    this.#indexes = codePointIndexes(text);
  }

  add(words) {
    for (const [word, start, end, offset] of words) {
      const from = this.#index(offset);
      this.#words.push({ start, end, from, to: this.#index(offset + [...word].length) });
    }
  }

  /** Index up to which audio is known to exist. */
  get spokenTo() {
    return this.#words.at(-1)?.to ?? 0;
  }

  get known() {
    return this.#words.length > 0;
  }

  /** [from, to] of the word being heard `seconds` into the context; from === to before the first. Time only goes forward. */
  at(seconds) {
    while (this.#words[this.#passed]?.start <= seconds) this.#passed++;
    const word = this.#words[this.#passed - 1];
    if (!word) return [0, 0];
    return seconds < word.end + 0.15 ? [word.from, word.to] : [word.to, word.to];
  }

  #index(point) {
    return this.#indexes[Math.min(point, this.#indexes.length - 1)];
  }
}

/**
 * Is silence the server's doing? Only if something speakable that it was given, and may speak, is still missing:
 * a finished sentence, or anything at all once the text has ended. Otherwise the writer is slow.
 */
export function serverOwesAudio({ sent, spokenTo, ended }) {
  const missing = sent.slice(spokenTo);
  if (!/[\p{L}\p{N}]/u.test(missing)) return false;
  return ended || /[\p{L}\p{N}][^.!?…。！？]*[.!?…。！？]["'”’)]*\s/u.test(missing);
}
