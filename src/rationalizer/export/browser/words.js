/* Texts to words and sentences, as `rationalizer.text` does it in Python. */

import { translate } from "./patterns.js";

const SPACES = /^[\p{White_Space}\x1c-\x1f]+|[\p{White_Space}\x1c-\x1f]+$/gu;
const ENDS = new Set(".!?…。！？");
const CLOSING = /^[\p{Pe}\p{Pf}'"]+$/u;
const ABBREVIATION = /^(?:(?:\p{L}\.)+|(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no)\.)$/iu;
const BREAK = /\n[\p{White_Space}]*\n|<br/iu;

export const strip = (text) => text.replace(SPACES, "");
export const fold = (text) => [...text].map((one) => (one === "ı" ? one : one.toUpperCase().toLowerCase())).join(""); // str.casefold
export const length = (text) => (/^[\0-\x7f]*$/.test(text) ? text.length : [...text].length); // in code points

/* Split texts by the package's patterns: `patterns` has `token`, `solid`, `wordlike` and `piece`. */
export class Splitter {
  constructor(patterns, rule) {
    const nested = { verbose: true, sets: true };
    this.token = rule === "spaces" ? translate(patterns.solid) : translate(patterns.token, nested);
    this.piece = translate(patterns.piece).regexp;
    this.wordlike = new RegExp(translate(patterns.wordlike, nested).regexp, "v");
    this.known = new Map(); // whether a token is punctuation
  }

  /* Return {tokens, offsets}; offsets are in JavaScript's units, so text.slice(start, end) is the token. */
  split(text) {
    const offsets = [];
    const { regexp, groups } = this.token;
    const has = (found, kind) => groups[kind]?.some((name) => found.groups[name] !== undefined);
    for (const found of text.matchAll(regexp)) {
      if (has(found, "token")) offsets.push([found.index, found.index + found[0].length]);
      else if (has(found, "run")) {
        let start = found.index;
        for (const [piece] of found[0].matchAll(this.piece)) offsets.push([start, (start += piece.length)]);
      }
    }
    return { text, tokens: offsets.map(([start, end]) => text.slice(start, end)), offsets };
  }

  isPunctuation(token) {
    let known = this.known.get(token);
    if (known === undefined) {
      known = !this.wordlike.test(token);
      if (this.known.size > 50_000) this.known.clear();
      this.known.set(token, known);
    }
    return known;
  }
}

/* The sentence number of each token, by the rule "punctuation" or "lines". */
export function sentenceNumbers({ text, tokens, offsets }, rule) {
  const gaps = offsets.slice(1).map(([start], k) => text.slice(offsets[k][1], start));
  const ends = rule === "lines" ? gaps.map((gap) => gap.includes("\n") || BREAK.test(gap)) : punctuationEnds(text, tokens, gaps);
  let number = 0;
  return tokens.map((_, k) => (k && ends[k - 1] ? ++number : number));
}

function punctuationEnds(text, tokens, gaps) {
  const cased = /\p{Uppercase}/u.test(text);
  let ended = false; // whether the sentence has ended, though closing quotes or brackets may follow
  let quotes = 0; // straight quotes so far in the sentence; every second one closes
  return gaps.map((gap, k) => {
    const token = tokens[k];
    const after = tokens[k + 1];
    quotes += token === '"';
    ended = endsSentence(token) || (ended && closes(token, quotes % 2 === 0));
    const [first] = after;
    const goesOn = closes(after, quotes % 2 === 1) || ENDS.has(first) || (cased && /^\p{Lowercase}/u.test(first));
    const end = (ended && !goesOn) || (gap.length > 1 && BREAK.test(gap));
    if (end) [ended, quotes] = [false, 0];
    return end;
  });
}

const closes = (token, secondQuote) => (token === '"' ? secondQuote : CLOSING.test(token));

function endsSentence(token) {
  const bare = token.replace(/[\p{Pe}\p{Pf}'"]+/gu, "");
  return ENDS.has(bare.at(-1)) && !ABBREVIATION.test(bare);
}
