/* A loaded model: from texts, a budget and constraints to an explanation, as `Rationalizer.explain` in Python. */

import { bestAlignment } from "./alignment.js";
import { averageBounds, parseBudget, wordLimit } from "./budget.js";
import { Conflict, impossible, parseConstraint, requireOfPair, requireOfText } from "./constraints.js";
import { VectorLookup } from "./lookup.js";
import { Networks, readTensors, VectorTable } from "./networks.js";
import { bestSequence, bestSpans, bestWords, preferMoreWords } from "./selection.js";
import { length, Splitter, strip } from "./words.js";

const MAX_CHARACTERS = 20_000;
const MAX_WORD_PAIRS = 250_000;
const [UNKNOWN, KNOWN, PUNCTUATION, BLANK] = [0, 1, 2, 3]; // kinds of tokens

/* Words by their vectors, and BiLSTMs: no library is needed. */
class VectorEncoder {
  static async load({ encoder, network }, files) {
    const loading = [files.json("vocabulary.json"), files.buffer("model.safetensors")];
    if (encoder.pretrained) loading.push(files.buffer("vectors.safetensors"));
    const [vocabulary, ...buffers] = await Promise.all(loading);
    const [weights, vectors] = buffers.map(readTensors);
    const learned = takeTable(weights, "encoder.learned.weight.");
    return Object.assign(new VectorEncoder(), {
      lower: encoder.lower,
      vocabulary,
      seen: new Map(vocabulary.map((word, k) => [word, k + 1])),
      lookup: vectors ? new VectorLookup(new TextDecoder().decode(vectors.get("words").data).split("\n")) : null,
      table: new VectorTable(encoder.size, learned, vectors && takeTable(vectors, "")),
      networks: new Networks(weights, network),
    });
  }

  rows(token) {
    const seen = this.seen.get(this.lower ? token.toLowerCase() : token) ?? 0;
    return { seen, rows: this.lookup ? this.lookup.rows(seen ? this.vocabulary[seen - 1] : token) : [] };
  }

  knows(token) {
    const { seen, rows } = this.rows(token);
    return seen > 0 || rows.length > 0;
  }

  encode({ tokens }) {
    return this.table.vectors(tokens.map((token) => this.rows(token)));
  }

  scoreWords(split) {
    split.vectors = this.encode(split);
    return this.networks.scoreWords(split.vectors);
  }

  predictFromWords({ vectors }, selected) {
    return this.networks.predictFromWords(vectors, selected);
  }

  readStates(split) {
    split.states = this.networks.states(this.encode(split));
  }

  scorePairs(splits) {
    return this.networks.scorePairs(splits[0].states, splits[1].states);
  }

  predictFromPairs(splits, pairs) {
    return this.networks.predictFromPairs(splits[0].states, splits[1].states, pairs);
  }
}

/* Remove a table of vectors from the tensors: 8-bit codes with a scale per row, or floats under `prefix` without its dot. */
function takeTable(tensors, prefix) {
  const names = [`${prefix}codes`, `${prefix}scales`, prefix.slice(0, -1)];
  const [codes, scales, floats] = names.map((name) => tensors.get(name)?.data);
  names.forEach((name) => tensors.delete(name));
  return { codes, scales, floats };
}

/* Load a model. `facts` describe it, `shared` what all models of the page have in common; `files` loads its files. */
export async function loadModel(facts, shared, files) {
  const encoder =
    facts.encoder.kind === "vectors"
      ? await VectorEncoder.load(facts, files)
      : await (await import("./transformer.js")).TransformerEncoder.load(facts, files, shared);
  return new Model(facts, shared, encoder);
}

export class TextError extends Error {}

class Model {
  constructor(facts, shared, encoder) {
    Object.assign(this, { facts, encoder });
    const splitter = new Splitter(shared.patterns, facts.words.rule);
    this.splitter = splitter;
    const isPunctuation = (token) => splitter.isPunctuation(token);
    this.tools = { stopwords: new Set(shared.stopwords), isPunctuation, sentences: facts.words.sentences };
    this.scored = new Map(); // the latest texts, so that another budget takes no time
  }

  /* `texts` has one text or two. `budget` and `constraints`, in text form, replace the model's own unless null. */
  async explain({ texts, budget = null, constraints = null }) {
    const { facts } = this;
    const ownBudget = parseBudget(budget ?? facts.budget);
    const isOther = JSON.stringify(ownBudget) !== JSON.stringify(parseBudget(facts.budget));
    if (isOther && !facts.method.follows_budget) throw new Conflict(`The method ${facts.method.name} does not follow a budget.`);
    if (ownBudget.kind === "average" && !facts.calibration) throw new Conflict("This model has no average budget; give a share such as 20%.");
    const own = (constraints ?? facts.constraints.map((one) => ({ ...one.own, text: one.text }))).map((one) => parseConstraint(one, facts.pairs, facts.method.excluded_constraints));
    if (own.length && ownBudget.kind === "average") throw new Conflict("Constraints cannot be combined with an average budget; give a share such as 20%.");
    const { splits, scores } = await this.score(texts);
    const select = facts.pairs ? this.alignWords : this.selectWords;
    const selection = select.call(this, splits, scores, ownBudget, own);
    const output = await (facts.pairs ? this.predictFromPairs(splits, selection.pairs) : this.encoder.predictFromWords(splits[0], selection.selected));
    const found = { texts: splits.map(({ text, tokens, offsets, kinds, counted }) => ({ text, tokens, offsets, counted, unknown: kinds.map((kind) => kind === UNKNOWN) })) };
    Object.assign(found, selection, { warnings: this.warnings(splits, selection, own, budget ?? facts.budget) });
    if (facts.task === "regression") return { ...found, label: output[0], probabilities: null };
    const probabilities = facts.classes.map((name, k) => [name, output[k]]);
    return { ...found, label: facts.classes[output.indexOf(Math.max(...output))], probabilities };
  }

  async score(texts) {
    const key = JSON.stringify(texts);
    if (!this.scored.has(key)) {
      const splits = texts.map((text, side) => this.read(text, this.facts.pairs ? ["premise", "hypothesis"][side] : "text"));
      if (this.facts.pairs && splits[0].tokens.length * splits[1].tokens.length > MAX_WORD_PAIRS) {
        throw new TextError(`The texts have more than ${MAX_WORD_PAIRS} pairs of words; shorten them.`);
      }
      for (const split of this.facts.pairs ? splits : []) await this.encoder.readStates(split);
      const scores = await (this.facts.pairs ? this.encoder.scorePairs(splits) : this.encoder.scoreWords(splits[0]));
      if (this.scored.size > 3) this.scored.clear();
      this.scored.set(key, { splits, scores });
    }
    return this.scored.get(key);
  }

  /* The words of a text, their kinds, and which of them can be selected. */
  read(text, name) {
    if (length(text) > MAX_CHARACTERS) throw new TextError(`The ${name} has ${length(text)} characters; the maximum is ${MAX_CHARACTERS}. Shorten it.`);
    const split = this.splitter.split(text);
    if (!strip(text) || !split.tokens.length) throw new TextError(`The ${name} has no word.`);
    split.kinds = split.tokens.map((token) => {
      if (!strip(token)) return BLANK;
      if (this.splitter.isPunctuation(token)) return PUNCTUATION;
      return this.encoder.knows(token) ? KNOWN : UNKNOWN;
    });
    const isFree = this.facts.words.punctuation === "free" && split.kinds.includes(KNOWN);
    split.counted = split.kinds.map((kind) => (isFree ? kind === KNOWN : kind !== BLANK));
    split.punctuation = split.kinds.map((kind) => isFree && kind === PUNCTUATION);
    return split;
  }

  selectWords([split], scores, budget, constraints) {
    const { counted } = split;
    const words = counted.filter(Boolean).length;
    const limit = wordLimit(budget, words);
    const { decoder, transition = 0 } = this.facts.method;
    const own = Float64Array.from(scores).filter((_, k) => counted[k]);
    let [y, unit] = [null, null];
    if (constraints.length) {
      const required = requireOfText(constraints, split, counted, limit, this.tools);
      const ranked = decoder === "top-k" ? preferMoreWords(own, scores.map((score, k) => (counted[k] ? score : 0)), limit) : own;
      y = bestSpans(ranked, transition, limit, required.layer);
      if (!y) throw impossible(constraints, `no selection of at most ${limit} words satisfies all of them`, "raise the budget, or leave a constraint out");
      unit = required.unit;
    } else if (decoder === "top-k") y = bestWords(own, limit);
    else if (budget.kind === "average") {
      const { least, multiplier } = averageBounds(budget, words, this.facts.calibration);
      const left = own.map((score) => Math.fround(score - Math.fround(multiplier)));
      y = bestSequence(left, left.map(() => transition), least, limit);
    } else y = bestSequence(own, own.map(() => transition), 0, limit);
    const selected = new Array(counted.length).fill(false);
    [...counted.keys()].filter((k) => counted[k]).forEach((k, position) => (selected[k] = y[position] === 1));
    return { selected: withPunctuation(selected, split.punctuation, unit), limit };
  }

  alignWords(splits, scores, budget, constraints) {
    const { method } = this.facts;
    const counted = splits.map((split) => split.counted);
    const sizes = counted.map((mask) => mask.filter(Boolean).length);
    const limit = method.follows_budget ? wordLimit(budget, Math.min(...sizes)) : Infinity;
    const layer = constraints.length ? requireOfPair(constraints, splits, counted, this.tools) : {};
    const z = bestAlignment(scores, counted, { budget: limit, complete: method.complete }, layer);
    if (!z) {
      const most = limit < Infinity ? `, budget ${limit}` : "";
      throw impossible(constraints, `no alignment satisfies all of them (${sizes.join(" and ")} words${most})`, "leave a constraint out, or change it");
    }
    const pairs = z.flatMap((row, i) => [...row.keys()].filter((j) => row[j]).map((j) => [i, j]));
    return { pairs, limit };
  }

  /* In a model that closes the premise, its aligned words are encoded once more, as a text of their own. */
  async predictFromPairs([premise, hypothesis], pairs) {
    if (!this.facts.network.closes_premise || !pairs.length) return this.encoder.predictFromPairs([premise, hypothesis], pairs);
    const aligned = [...premise.tokens.keys()].filter((k) => pairs.some(([i]) => i === k));
    const closed = { tokens: aligned.map((k) => premise.tokens[k]) };
    await this.encoder.readStates(closed);
    return this.encoder.predictFromPairs([closed, hypothesis], pairs.map(([i, j]) => [aligned.indexOf(i), j]));
  }

  warnings(splits, { selected, pairs }, constraints, budget) {
    const names = this.facts.pairs ? ["premise", "hypothesis"] : ["text"];
    const unknown = names.filter((_, side) => !splits[side].kinds.includes(KNOWN));
    const found = unknown.length ? [`The model knows none of the words of the ${unknown.join(" or the ")}; the prediction is a guess.`] : [];
    if (pairs ? pairs.length : selected.some(Boolean)) return found;
    if (constraints.length) found.push(`No word is selected under these constraints and a budget of ${budget}; the prediction is a guess. Raise the budget.`);
    else if (!unknown.length) found.push(pairs ? "No words are aligned." : "No word is selected; the prediction is a guess.");
    return found;
  }
}

/* Extend a selection to the punctuation between selected words, and to that of selected units. */
function withPunctuation(selected, punctuation, unit) {
  const words = [...punctuation.keys()].filter((k) => !punctuation[k]);
  let after = 0; // the index of the next word
  return selected.map((one, k) => {
    if (!punctuation[k]) return one;
    while (after < words.length && words[after] < k) after += 1;
    const around = [words[after - 1], words[after]].filter((word) => word !== undefined);
    const isBetween = around.length === 2 && around.every((word) => selected[word]);
    return isBetween || (unit !== null && around.some((word) => selected[word] && unit[word] === unit[k]));
  });
}
