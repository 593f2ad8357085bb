/* BiLSTM models, evaluated for one text or pair: `HighlightModel` and `PairModel` with a `VectorEncoder`.

A sentence takes a few milliseconds, so no library for networks is loaded. Sums have double precision; states and scores
are rounded to single precision, as in Python. */

/* A file of the library `safetensors`: name -> {shape, data}. */
export function readTensors(buffer) {
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const tensors = new Map();
  delete header.__metadata__;
  for (const [name, { dtype, shape, data_offsets: offsets }] of Object.entries(header)) {
    const [start, end] = offsets;
    const bytes = buffer.slice(8 + size + start, 8 + size + end);
    const kinds = { F32: Float32Array, I8: Int8Array, U8: Uint8Array, F16: Uint16Array };
    if (!kinds[dtype]) throw new Error(`${name} has numbers of the unknown kind ${dtype}`);
    const data = new kinds[dtype](bytes);
    tensors.set(name, { shape, data: dtype === "F16" ? Float32Array.from(data, half) : data });
  }
  return tensors;
}

function half(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size = exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction;
  return (bits & 0x8000 ? -1 : 1) * (exponent === 31 ? (fraction ? NaN : Infinity) : size);
}

/* Rows of numbers. */
class Matrix {
  constructor(rows, columns, data = new Float32Array(rows * columns)) {
    Object.assign(this, { rows, columns, data });
  }

  row(i) {
    return this.data.subarray(i * this.columns, (i + 1) * this.columns);
  }

  static from(rows) {
    const made = new Matrix(rows.length, rows[0].length);
    rows.forEach((row, i) => made.data.set(row, i * made.columns));
    return made;
  }

  get list() {
    return Array.from({ length: this.rows }, (_, i) => this.row(i));
  }
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

function concat(...parts) {
  const joined = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

const compare = (own, aligned) => concat(own, aligned, own.map((x, k) => x - aligned[k]), own.map((x, k) => x * aligned[k]));

function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

/* out += weight · input for a (rows, input.length) weight; four rows at a time, so that no sum waits for another. */
function addProduct(weight, input, out) {
  const size = input.length;
  const rows = out.length;
  let row = 0;
  for (; row + 3 < rows; row += 4) {
    const [first, second, third, fourth] = [row * size, (row + 1) * size, (row + 2) * size, (row + 3) * size];
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let k = 0; k < size; k++) {
      const x = input[k];
      a += weight[first + k] * x;
      b += weight[second + k] * x;
      c += weight[third + k] * x;
      d += weight[fourth + k] * x;
    }
    out[row] += a;
    out[row + 1] += b;
    out[row + 2] += c;
    out[row + 3] += d;
  }
  for (; row < rows; row++) out[row] += dot(weight.subarray(row * size, (row + 1) * size), input);
}

export class Networks {
  /* `weights` by their names in the model, `facts` are the settings of its networks. */
  constructor(weights, facts) {
    this.facts = facts;
    const rounded = (name, codes) => {
      const scales = weights.get(`${name}.scales`).data;
      return codes.map((code, k) => Math.fround(code * scales[Math.floor((k * scales.length) / codes.length)]));
    };
    this.weights = new Map();
    for (const [name, { data }] of weights) {
      const own = name.replace(/\.codes$/, "");
      if (!name.endsWith(".scales")) this.weights.set(own, own === name ? Float64Array.from(data) : rounded(own, Float64Array.from(data)));
    }
  }

  /* The generator's states of a text with these word vectors. */
  states(vectors) {
    const states = this.bilstm("encoder.generator", vectors);
    return this.facts.word_scores ? Matrix.from(states.list.map((state, k) => concat(state, vectors.row(k)))) : states;
  }

  scoreWords(vectors) {
    const states = this.states(vectors);
    return Float32Array.from(states.list, (state) => this.linear("method.scorer", state)[0]);
  }

  /* Rows of scores, from the states of both texts. */
  scorePairs(premise, hypothesis) {
    const threshold = this.facts.threshold ? this.weights.get("threshold")[0] : 0;
    return premise.list.map((one) => Float32Array.from(hypothesis.list, (other) => Math.fround(dot(one, other)) - threshold));
  }

  /* Probabilities, or the value, from the selected words alone. */
  predictFromWords(vectors, selected) {
    const kept = [...selected.keys()].filter((k) => selected[k]);
    const closed = this.facts.closed_gaps;
    const visible = new Matrix(closed ? Math.max(kept.length, 1) : vectors.rows, vectors.columns);
    kept.forEach((k, position) => visible.data.set(vectors.row(k), (closed ? position : k) * visible.columns));
    const states = this.bilstm(this.facts.predictor, visible);
    const pooled = closed && !kept.length ? new Float32Array(states.columns * (this.facts.pooling === "max-mean" ? 2 : 1)) : pool(states, this.facts.pooling);
    if (!this.facts.word_sums) return this.predict(pooled);
    const sums = new Float64Array(vectors.columns);
    for (const k of kept) vectors.row(k).forEach((x, column) => (sums[column] += x));
    return this.predict(concat(pooled, sums.map((sum) => sum / Math.sqrt(Math.max(kept.length, 1e-6)))));
  }

  /* The same from the states of both texts and the aligned pairs of words. */
  predictFromPairs(premise, hypothesis, pairs) {
    const partners = [new Matrix(premise.rows, premise.columns), new Matrix(hypothesis.rows, hypothesis.columns)];
    for (const [i, j] of pairs) {
      partners[0].row(i).set(hypothesis.row(j));
      partners[1].row(j).set(premise.row(i));
    }
    const compared = (own, side) => own.list.map((state, k) => compare(state, partners[side].row(k)));
    const sides = [this.facts.faithful ? partners[0].list : compared(premise, 0), compared(hypothesis, 1)];
    const [p, h] = sides.map((features, side) => {
      const name = side === 0 && this.facts.faithful ? "compose_premise" : "compose";
      const composed = features.map((one) => this.linear(name, one).map((x) => Math.max(x, 0)));
      return pool(this.bilstm("composed", Matrix.from(composed)), this.facts.pooling);
    });
    if (this.facts.closes_premise && !pairs.length) p.fill(0); // no word of the premise is visible
    return this.predict(compare(p, h));
  }

  linear(name, input) {
    const out = this.weights.get(`${name}.bias`).slice();
    addProduct(this.weights.get(`${name}.weight`), Float64Array.from(input), out);
    return out;
  }

  /* Probabilities of the classes; of a regression, the value. */
  predict(features) {
    const outputs = this.linear("head.linear", features);
    const { target } = this.facts;
    if (target) return Float32Array.from(outputs, (x) => (target.sigmoid ? sigmoid(x) : x) * target.deviation + target.mean);
    const largest = Math.max(...outputs);
    const powers = outputs.map((x) => Math.exp(x - largest));
    const total = powers.reduce((sum, x) => sum + x, 0);
    return Float32Array.from(powers, (x) => x / total);
  }

  /* The states of both directions, side by side. */
  bilstm(name, inputs) {
    const hidden = this.weights.get(`${name}.forwards.bias_ih_l0`).length / 4;
    const states = new Matrix(inputs.rows, 2 * hidden);
    for (const [side, direction] of ["forwards", "backwards"].entries()) {
      const [wih, whh, bih, bhh] = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"].map((part) => this.weights.get(`${name}.${direction}.${part}_l0`));
      const bias = bih.map((b, k) => Math.fround(b + bhh[k]));
      const [state, cell] = [new Float64Array(hidden), new Float64Array(hidden)];
      for (let step = 0; step < inputs.rows; step++) {
        const t = side ? inputs.rows - 1 - step : step;
        const gates = bias.slice();
        const input = Float64Array.from(inputs.row(t));
        if (input.some(Boolean)) addProduct(wih, input, gates);
        addProduct(whh, state, gates);
        for (let k = 0; k < hidden; k++) {
          cell[k] = sigmoid(gates[hidden + k]) * cell[k] + sigmoid(gates[k]) * Math.tanh(gates[2 * hidden + k]);
          state[k] = sigmoid(gates[3 * hidden + k]) * Math.tanh(cell[k]);
        }
        states.row(t).set(state, side * hidden);
      }
    }
    return states;
  }
}

/* The states of all positions as one vector. */
function pool(states, how) {
  const { rows, columns } = states;
  if (how === "max-mean") return concat(pool(states, "max"), pool(states, "mean"));
  if (how === "last") return concat(states.row(rows - 1).subarray(0, columns / 2), states.row(0).subarray(columns / 2));
  const pooled = new Float64Array(columns).fill(how === "max" ? -Infinity : 0);
  for (const row of states.list) row.forEach((x, k) => (pooled[k] = how === "max" ? Math.max(pooled[k], x) : pooled[k] + x / rows));
  return Float32Array.from(pooled);
}

/* Word vectors: those of a pretrained table in 8 bits, plus those learned in training. */
export class VectorTable {
  constructor(size, learned, pretrained) {
    Object.assign(this, { size, learned, pretrained });
  }

  /* One row per word: `rows` of the pretrained table, whose mean counts, and the row `seen` of the learned one. */
  vectors(words) {
    const out = new Matrix(words.length, this.size);
    words.forEach(({ rows, seen }, k) => {
      const vector = out.row(k);
      for (const row of rows) this.add(vector, this.pretrained, row, rows.length);
      if (seen) this.add(vector, this.learned, seen, 1);
    });
    return out;
  }

  add(vector, { codes, scales, floats }, row, parts) {
    const scale = floats ? 1 : Math.fround(scales[row] / parts);
    const from = (floats ?? codes).subarray(row * this.size, (row + 1) * this.size);
    for (let k = 0; k < this.size; k++) vector[k] += Math.fround(from[k] * scale);
  }
}
