/* Constraints by name: text forms such as "spans=2", and what they require of a text or a pair.

As `rationalizer.constraints` in Python; the JSON form of a constraint has the same fields. */

import { translate } from "./patterns.js";
import { fold, length, sentenceNumbers, strip } from "./words.js";

const MOST_LIST = 1000; // words of a constraint
const MOST_PATTERN = 1000; // characters

export class Conflict extends Error {}

const quote = (text) => `“${length(text) > 60 ? `${[...text].slice(0, 60).join("")}…` : text}”`;
const plain = (token) => fold(token).replaceAll("’", "'");
const list = (text) => text.split(",").map(strip).filter(Boolean);

function wholeNumber(value, least = 1) {
  if (!/^\d{1,9}$/.test(value) || +value < least) throw new Error(`a whole number from ${least} was expected, got ${quote(value)}`);
  return +value;
}

function flags(text, known) {
  const given = list(text);
  const unknown = given.find((flag) => !known.includes(flag));
  if (unknown !== undefined) throw new Error(`one of ${known.join(", ")} or words:… was expected, got ${quote(unknown)}`);
  return Object.fromEntries(given.map((flag) => [flag, true]));
}

function pattern(text) {
  if (!text || length(text) > MOST_PATTERN) throw new Error(`a pattern has 1 to ${MOST_PATTERN} characters`);
  translate(text);
  return text;
}

/* Split at the first occurrence. */
function partition(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + separator.length)];
}

const number = (field) => (value) => ({ [field]: wholeNumber(value) });

const nothing = (value) => {
  if (value) throw new Error(`it takes no value, got ${quote(value)}`);
  return {};
};

function words(value) {
  const [start, regexp] = partition(`,${value}`, ",pattern:");
  const [named, own] = partition(start, ",words:");
  const given = { ...flags(named, ["stopwords", "punctuation"]), words: list(own ?? "") };
  if (regexp !== null) given.pattern = pattern(regexp);
  const spaced = given.words.find((word) => /[\p{White_Space}]/u.test(word));
  if (spaced) throw new Error(`${quote(spaced)} is not one word`);
  if (given.words.length > MOST_LIST) throw new Error(`at most ${MOST_LIST} words are allowed`);
  if (regexp === null && !given.words.length && Object.keys(given).length === 1) throw new Error("no words are named");
  return given;
}

function links(value) {
  const [named, own] = partition(`,${value}`, ",words:");
  const pairs = list(own ?? "").map((pair) => pair.split("/"));
  if (!pairs.every((pair) => pair.length === 2 && pair.every(Boolean))) throw new Error("words are pairs such as not/never");
  const given = { ...flags(named, ["equal", "stopwords"]), words: pairs };
  if (!pairs.length && Object.keys(given).length === 1) throw new Error("no words are named");
  return given;
}

function range(value) {
  const found = /^(\d*)\s*-\s*(\d*)$/.exec(value);
  if (!found || !(found[1] || found[2])) throw new Error(`a range of words was expected, got ${quote(value)}`);
  const given = { at_least: found[1] ? wholeNumber(found[1]) : 1, at_most: found[2] ? wholeNumber(found[2]) : null };
  if (given.at_most !== null && given.at_least > given.at_most) throw new Error("the minimum exceeds the maximum; swap them");
  return given;
}

function ends(value) {
  if (!value.startsWith("pattern:")) throw new Error(`pattern:… was expected, got ${quote(value)}`);
  return { pattern: pattern(value.slice("pattern:".length)) };
}

/* The spans of characters that match. */
const matches = (regexp, text) => (regexp ? [...text.matchAll(translate(regexp).regexp)].map((one) => [one.index, one.index + one[0].length]).filter(([a, b]) => b > a) : []);

/* Call `mark` with the tokens that a constraint of the kind `words` names. */
function named(given, text, mark) {
  const wanted = new Set(given.words?.map(fold));
  const spans = matches(given.pattern, text.text);
  text.tokens.forEach((token, k) => {
    const word = plain(token);
    const [start, end] = text.offsets[k];
    const isNamed = wanted.has(word) || (given.stopwords && text.stopwords.has(word));
    const isPunctuation = given.punctuation && text.isPunctuation(token);
    if (isNamed || isPunctuation || spans.some(([a, b]) => a < end && start < b)) mark(k);
  });
}

function never(given, pair) {
  const [premise, hypothesis] = pair.indices;
  const forbid = (rows, columns) => rows?.forEach((i) => columns?.forEach((j) => (pair.never[i][j] = true)));
  for (const [one, other] of given.words ?? []) forbid(premise.get(fold(one)), hypothesis.get(fold(other)));
  for (const [word, rows] of premise) {
    if (given.equal) forbid(rows, hypothesis.get(word));
    if (given.stopwords && pair.stopwords.has(word)) forbid(rows, pair.texts[1].tokens.map((_, j) => j));
  }
  for (const [word, columns] of hypothesis) {
    if (given.stopwords && pair.stopwords.has(word)) forbid(pair.texts[0].tokens.map((_, i) => i), columns);
  }
}

function must(given, pair, name) {
  const [premise, hypothesis] = pair.indices;
  const wanted = new Map((given.words ?? []).map(([one, other]) => [`${fold(one)}/${fold(other)}`, [fold(one), fold(other)]]));
  const equal = [...premise.keys()].filter((word) => hypothesis.has(word) && (given.stopwords || !pair.stopwords.has(word)));
  for (const [one, other] of [...wanted.values(), ...(given.equal ? equal.map((word) => [word, word]) : [])]) {
    const columns = hypothesis.get(other) ?? [];
    premise.get(one)?.slice(0, columns.length).forEach((i, k) => {
      if (!pair.must.some(({ link }) => link[0] === i && link[1] === columns[k])) pair.must.push({ link: [i, columns[k]], name });
    });
  }
}

const tighten = (layer, key, bound) => (layer[key] = Math.min(bound, layer[key] ?? Infinity));

const KINDS = {
  spans: { usage: "spans=2", parse: number("most"), layer: (layer, { most }) => tighten(layer, "spans", most) },
  "span-length": {
    usage: "span-length=3-8",
    parse: range,
    layer(layer, { at_least = 1, at_most = null }) {
      layer.shortest = Math.max(layer.shortest ?? 1, at_least);
      if (at_most !== null) tighten(layer, "longest", at_most);
    },
  },
  "whole-sentences": {
    usage: "whole-sentences",
    parse: nothing,
    text: (text) => text.sentence.forEach((number, k) => k && number === text.sentence[k - 1] && (text.together[k - 1] = true)),
  },
  "per-sentence": { usage: "per-sentence=3", parse: number("most"), layer: (layer, { most }) => tighten(layer, "perGroup", most) },
  must: { usage: "must=words:not", parse: words, text: (text, given) => named(given, text, (k) => (text.must[k] = true)) },
  never: { usage: "never=stopwords", parse: words, text: (text, given) => named(given, text, (k) => (text.never[k] = true)) },
  ends: {
    usage: "ends=pattern:not \\w+",
    parse: ends,
    text(text, given) {
      for (const [start, end] of matches(given.pattern, text.text)) {
        const inside = [...text.offsets.keys()].filter((k) => text.offsets[k][1] > start && text.offsets[k][0] < end);
        inside.slice(0, -1).forEach((k) => (text.together[k] = true));
      }
    },
  },
  "must-align": { usage: "must-align=equal", pairs: true, parse: links, pair: (pair, given) => must(given, pair, format(given)) },
  "never-align": { usage: "never-align=stopwords", pairs: true, parse: links, pair: (pair, given) => never(given, pair) },
  monotone: { usage: "monotone", pairs: true, parse: nothing, layer: (layer) => (layer.monotone = true) },
  "exactly-k": {
    usage: "exactly-k=3",
    pairs: true,
    parse: number("k"),
    layer(layer, { k }) {
      if (layer.exactly != null && layer.exactly !== k) throw new Conflict(`exactly-k=${layer.exactly} and exactly-k=${k} cannot both hold; leave one out.`);
      layer.exactly = k;
    },
  },
};

/* A constraint from its text form, for pairs of texts or single ones; one in JSON form is only checked. */
export function parseConstraint(value, pairs, excluded = []) {
  const [name, setting] = typeof value === "string" ? partition(strip(value), "=") : [value.name, null];
  const key = strip(name).toLowerCase().replace(/[_ ]/g, "-");
  const kind = KINDS[key];
  const usable = Object.entries(KINDS).filter(([other, { pairs: forPairs = false }]) => forPairs === pairs && !excluded.includes(other));
  if (!usable.some(([other]) => other === key)) {
    const problem = kind ? `${key} cannot be used with this model` : `there is no constraint ${quote(name)}`;
    throw new Conflict(`${problem}; write one of ${usable.map(([, { usage }]) => usage).join(", ")}.`);
  }
  if (typeof value !== "string") return value;
  try {
    const given = { ...kind.parse(strip(setting ?? "")), text: strip(value) };
    if (key === "must-align" && given.stopwords && !given.equal) throw new Error("stopwords are aligned where they are equal; give equal too");
    return { name: key, ...given };
  } catch (error) {
    throw new Conflict(`the constraint ${quote(value)}: ${error.message}; write it as ${kind.usage}.`);
  }
}

const format = (constraint) => constraint.text ?? constraint.name;
const names = (constraints) => constraints.map(format).join(", ");

/* The requirements on a text (from `Splitter.split`) as arguments of `bestSpans`, for its counted words; and `unit`, a
number per token, if tokens are selected together. `tools` has stopwords, isPunctuation and the sentence rule. */
export function requireOfText(constraints, split, counted, limit, tools) {
  const n = split.tokens.length;
  const flagged = () => new Array(n).fill(false);
  const text = { ...split, ...tools, must: flagged(), never: flagged(), together: flagged() };
  let sentence;
  Object.defineProperty(text, "sentence", { get: () => (sentence ??= sentenceNumbers(split, tools.sentences)) });
  const layer = {};
  for (const constraint of constraints) {
    KINDS[constraint.name].layer?.(layer, constraint);
    KINDS[constraint.name].text?.(text, constraint);
  }
  if (layer.longest != null && (layer.shortest ?? 1) > layer.longest) {
    throw new Conflict(`A span cannot have at least ${layer.shortest} words and at most ${layer.longest} (${names(constraints)}); change one of them.`);
  }
  let number = 0;
  const units = text.tokens.map((_, k) => (k && !text.together[k - 1] ? ++number : number));
  const ofCounted = (values) => values.filter((_, k) => counted[k]);
  if (text.together.some(Boolean)) layer.unit = ofCounted(units);
  if (text.must.some(Boolean) || text.never.some(Boolean)) layer.fixed = ofCounted(text.must.map((one, k) => one - text.never[k]));
  if (layer.perGroup != null) layer.group = ofCounted(text.sentence);
  const reason = text.must.some(Boolean) ? textConflict(text, units, counted, limit) : "";
  if (reason) throw impossible(constraints, reason, "raise the budget, or leave a constraint out");
  return { layer, unit: layer.unit ? units : null };
}

export const impossible = (constraints, reason, remedy) => new Conflict(`Under ${names(constraints)}: ${reason}; ${remedy}.`);

function textConflict({ tokens, must, never, isPunctuation }, unit, counted, limit) {
  const all = [...tokens.keys()];
  const unitsOf = (chosen) => new Set(all.filter((k) => chosen[k] && counted[k]).map((k) => unit[k]));
  const excluded = unitsOf(never);
  const both = all.find((k) => must[k] && excluded.has(unit[k]));
  if (both !== undefined) {
    const other = never[both] ? "it" : "a word that it is selected together with";
    return `${quote(tokens[both])} must be selected, but ${other} never may`;
  }
  const unknown = all.find((k) => must[k] && !counted[k] && !isPunctuation(tokens[k]));
  if (unknown !== undefined) return `${quote(tokens[unknown])} must be selected, but the model does not know the word`;
  const required = unitsOf(must);
  const count = all.filter((k) => counted[k] && required.has(unit[k])).length;
  return count > limit ? `${count} words must be selected, but the budget allows ${limit}` : "";
}

/* The requirements on a pair, as arguments of `bestAlignment`. */
export function requireOfPair(constraints, texts, counted, tools) {
  const indices = texts.map(({ tokens }) => {
    const found = new Map();
    tokens.forEach((token, k) => {
      if (tools.isPunctuation(token)) return;
      if (!found.has(plain(token))) found.set(plain(token), []);
      found.get(plain(token)).push(k);
    });
    return found;
  });
  const grid = (value) => texts[0].tokens.map(() => new Array(texts[1].tokens.length).fill(value));
  const pair = { texts, indices, must: [], never: grid(false), stopwords: tools.stopwords };
  const layer = {};
  for (const constraint of constraints) {
    KINDS[constraint.name].layer?.(layer, constraint);
    KINDS[constraint.name].pair?.(pair, constraint);
  }
  if (pair.must.length || pair.never.some((row) => row.some(Boolean))) {
    layer.fixed = pair.never.map((row) => row.map((one) => (one ? -1 : 0)));
    for (const { link } of pair.must) layer.fixed[link[0]][link[1]] = 1;
  }
  const reason = pairConflict(pair, counted, layer.monotone);
  if (reason) throw impossible(constraints, reason, "leave a constraint out, or change it");
  return layer;
}

function pairConflict({ texts, must, never }, counted, monotone) {
  const shown = ({ link: [i, j] }) => `${quote(texts[0].tokens[i])}–${quote(texts[1].tokens[j])}`;
  const describe = (...wanted) => `${wanted.map(shown).join(" and ")} must be aligned (${[...new Set(wanted.map(({ name }) => name))].join(", ")})`;
  for (const one of must) {
    const [i, j] = one.link;
    if (never[i][j]) return `${describe(one)}, but never may`;
    for (const side of [0, 1]) {
      if (!counted[side][one.link[side]]) return `${describe(one)}, but ${quote(texts[side].tokens[one.link[side]])} cannot be`;
    }
  }
  for (const [k, one] of must.entries()) {
    for (const other of must.slice(0, k)) {
      const [rows, columns] = [other.link[0] - one.link[0], other.link[1] - one.link[1]];
      if (!rows || !columns) return `${describe(other, one)}, but a word has one partner at most`;
      if (monotone && rows * columns < 0) return `${describe(other, one)}, but they cross`;
    }
  }
  return "";
}
