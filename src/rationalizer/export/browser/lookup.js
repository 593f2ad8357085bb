/* The rows of a word in a table of word vectors, also if it is written in another form or misspelled:
`rationalizer.text.vector_lookup`. */

import { length, strip } from "./words.js";

const MAX_LENGTH = 64;
const MAX_PARTS = 8;
const FREQUENT_ROWS = 10_000;
const MIN_LENGTH_SIMPLE_TYPO = 6;
const MIN_LENGTH_ANY_TYPO = 9;
const MAX_LENGTH_TYPO = 24;
const MIN_LENGTH_CORRECTION = 5;
const CORRECTION_ROWS = 20_000;
const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"];

const PLAIN = { ø: "o", đ: "d", ł: "l", ħ: "h", ı: "i", ß: "ss", æ: "ae", œ: "oe", þ: "th" };
const ACRONYM = /^(?:[a-z]\.)+[a-z]?$/;
const NUMBER = /^[-+(#~]*[$£€¥]?(\d{1,12}|\d{1,3}(?:,\d{3}){1,3})(\.\d*)?[%)+]?[.,;:!?)]*$/;
const CONTRACTION = /^([^\n]+?)(n't|'(?:s|re|ve|m|ll|d))$/u;
const NOT = /^(do|did|does|is|was|are|were|has|have|had|ca|could|wo|would|should|ai)nt?$/;
const WITHOUT_APOSTROPHE = /^(?:(that|what|there|here|let|who|where|how)(s)|(i|you|we|they)(ve|re|ll))$/;
const OPENING = /^["'([{*_#@$~\-+.]+/;
const CLOSING = /[.,;:!?"')\]}*_%~\-]+$/;
const PUNCTUATION = /^[.,!?"'()[\]*-]{2,}$/;
const PIECE = /[\p{L}\p{N}]+(?:'[\p{L}\p{N}]+)*/gu;
const LETTERS_OR_DIGITS = /\p{Nd}+|[\p{L}\p{Nl}\p{No}]+/gu;
const LENGTHENED = /([^\n])\1{2,}/u;
const ASCII = /^[\0-\x7f]*$/;
const ALPHABETIC = /^\p{L}+$/u;
const ALPHANUMERIC = /^[\p{L}\p{N}]+$/u;

export class VectorLookup {
  constructor(words) {
    this.row = new Map();
    for (let k = words.length - 1; k >= 0; k--) this.row.set(words[k], k); // the first of duplicate words
    this.found = new Map();
  }

  /* The rows whose mean is the token's vector; empty if the token is unknown. */
  rows(token) {
    let rows = this.found.get(token);
    if (rows === undefined) {
      rows = this.search(token);
      if (this.found.size > 50_000) this.found.clear();
      this.found.set(token, rows);
    }
    return rows;
  }

  search(token) {
    const exact = this.row.get(token) ?? this.row.get(token.toLowerCase());
    if (exact !== undefined) return [exact];
    const text = normalize(token);
    if (!text || length(token) > MAX_LENGTH || length(text) > MAX_LENGTH) return [];
    const variant = this.variant(text);
    if (variant !== undefined) return [variant];
    const number = this.number(text);
    if (number.length) return number;
    const trimmed = text.replace(OPENING, "").replace(CLOSING, "");
    if (trimmed !== text && (length(trimmed) > 1 || ALPHANUMERIC.test(trimmed))) return this.rows(trimmed);
    const contraction = this.contraction(text);
    if (contraction.length) return contraction;
    const lengthened = this.lengthened(text);
    if (lengthened !== undefined) return [lengthened];
    const parts = this.parts(text);
    if (parts.length) return parts;
    const corrected = this.corrected(text);
    return corrected === undefined ? [] : [corrected];
  }

  first(forms) {
    for (const form of forms) {
      const row = this.row.get(form);
      if (row !== undefined) return row;
    }
  }

  variant(text) {
    return this.first(variants(text));
  }

  number(text) {
    const found = NUMBER.exec(text);
    const row = found && this.first(numbersLike(found[1].replaceAll(",", ""), found[2] ?? ""));
    return row == null ? [] : [row];
  }

  contraction(text) {
    const [start, end] = splitContraction(text.toLowerCase());
    if (!start) return [];
    const row = this.variant(start);
    const ending = this.row.get(end);
    const rows = row === undefined ? this.contraction(start) : [row]; // "wouldn't've" has two endings
    // Without n't a word means the opposite; without any other ending it means nearly the same.
    if (!rows.length || (ending === undefined && end === "n't")) return [];
    return ending === undefined ? rows : [...rows, ending];
  }

  parts(text) {
    const joined = text.replaceAll("-", "").replaceAll("'", "");
    if (joined !== text && ALPHABETIC.test(joined)) {
      const row = this.variant(joined);
      if (row !== undefined) return [row];
    }
    if (PUNCTUATION.test(text)) return this.rowsOfPieces([...new Set(text)]);
    const pieces = text.match(PIECE) ?? [];
    const isLetter = (piece) => length(piece) === 1 && ALPHABETIC.test(piece);
    if (!pieces.length || (pieces.length === 1 && length(pieces[0]) === 1) || pieces.every(isLetter)) return [];
    const smaller = pieces.flatMap((piece) => (this.rowsOfPiece(piece).length ? [piece] : (piece.match(LETTERS_OR_DIGITS) ?? [])));
    return smaller.length > 1 || smaller[0] !== text ? this.rowsOfPieces(smaller) : [];
  }

  rowsOfPiece(text) {
    const row = this.variant(text) ?? (/^\p{Nd}+$/u.test(text) ? undefined : this.lengthened(text));
    if (row !== undefined) return [row];
    const number = this.number(text);
    return number.length ? number : this.contraction(text);
  }

  rowsOfPieces(pieces) {
    const rows = [];
    for (const piece of pieces) {
      const found = this.rowsOfPiece(piece);
      if (!found.length && /\p{L}/u.test(piece)) return [];
      rows.push(...found);
    }
    return rows.length <= MAX_PARTS ? rows : [];
  }

  lengthened(text) {
    const rows = [...shortened(text)].map((form) => this.variant(form)).filter((row) => row !== undefined);
    return rows.find((row) => row < FREQUENT_ROWS) ?? rows[0];
  }

  corrected(text) {
    const word = text.toLowerCase();
    if (!/^[a-z]+$/.test(word) || word.length < MIN_LENGTH_SIMPLE_TYPO || word.length > MAX_LENGTH_TYPO) return undefined;
    const capitalized = /^\p{Uppercase}/u.test(text) && text !== text.toUpperCase(); // probably a name
    if (word.length < MIN_LENGTH_ANY_TYPO && capitalized) return undefined;
    let best;
    const consider = (form) => {
      const row = form.length >= MIN_LENGTH_CORRECTION ? this.row.get(form) : undefined;
      if (row < (best ?? CORRECTION_ROWS)) best = row;
    };
    undoSimpleTypo(word, consider);
    if (word.length >= MIN_LENGTH_ANY_TYPO) undoAnyTypo(word, consider);
    return best;
  }
}

/* Replace typographic quotes and dashes, ligatures and full-width characters by plain ones. */
const normalize = (token) => strip(typographic(typographic(token).normalize("NFKC")));

const typographic = (text) =>
  text
    .replace(/[‘’‚‛ʼ′`´]/g, "'")
    .replace(/[“”„‟«»″]/g, '"')
    .replace(/[‐‑‒–—―−]/g, "-")
    .replace(/[\u00ad\u200b\u200c\u200d\u2060\ufe0f\ufeff]/g, "");

function capitalize(text) {
  const [first = ""] = text;
  const [upper = "", ...rest] = first.toUpperCase();
  return upper + rest.join("").toLowerCase() + text.slice(first.length).toLowerCase();
}

/* Whether the canonical combining class of a character is not 0: then it changes places with a mark of another class. */
const combines = (mark) => mark === "\u0345" || `\u0345${mark}`.normalize("NFD") !== `\u0345${mark}`;

function* variants(text) {
  let lower = text.toLowerCase();
  yield* [text, lower, capitalize(text), text.toUpperCase()];
  if (!ASCII.test(lower)) {
    const letters = [...lower.normalize("NFKD")].map((letter) => PLAIN[letter] ?? letter);
    lower = letters.filter((letter) => !combines(letter)).join("");
    yield* [lower, capitalize(lower)];
  }
  if (ACRONYM.test(lower)) {
    const bare = lower.replaceAll(".", "");
    yield* [`${lower}.`, bare, bare.toUpperCase()];
  }
}

function* numbersLike(whole, fraction) {
  yield* [whole + fraction, whole + fraction.replace(/0+$/, "").replace(/\.+$/, ""), whole];
  const digits = whole.replace(/^0+/, "") || "0";
  yield* [digits, digits[0] + "0".repeat(digits.length - 1)];
  for (let zeros = digits.length - 1; zeros >= 0; zeros--) yield `1${"0".repeat(zeros)}`;
}

/* Each run of a letter shortened to two or one, each run of a sign to three, two or one. */
function* shortened(text) {
  const pieces = text.split(LENGTHENED); // alternates: text between runs, repeated character
  const runs = pieces.filter((_, k) => k % 2);
  if (!runs.length || runs.length > 4) return;
  const forms = (k) => {
    if (k >= pieces.length) return [""];
    const rest = forms(k + 2);
    const lengths = k + 1 >= pieces.length ? [0] : ALPHANUMERIC.test(pieces[k + 1]) ? [2, 1] : [3, 2, 1];
    return lengths.flatMap((times) => rest.map((end) => pieces[k] + (pieces[k + 1] ?? "").repeat(times) + end));
  };
  yield* forms(0);
}

function splitContraction(text) {
  let found = CONTRACTION.exec(text);
  if (found) return [found[1], found[2]];
  found = NOT.exec(text);
  if (found) return [found[1], "n't"];
  found = WITHOUT_APOSTROPHE.exec(text);
  return found ? [found[1] ?? found[3], `'${found[2] ?? found[4]}`] : ["", ""];
}

function undoSimpleTypo(word, consider) {
  for (let k = 1; k <= word.length; k++) {
    const start = word.slice(0, k);
    const end = word.slice(k);
    for (const letter of LETTERS) consider(start + letter + end);
    if (end.length > 1) consider(start + end[1] + end[0] + end.slice(2));
    if (end && (end[0] === start.at(-1) || end === "s")) consider(start + end.slice(1));
  }
}

function undoAnyTypo(word, consider) {
  for (let k = 1; k < word.length; k++) {
    const start = word.slice(0, k);
    const end = word.slice(k + 1);
    consider(start + end);
    for (const letter of LETTERS) consider(start + letter + end);
  }
}
