/* The best selection of words: `sequence_budget_map` and `spans_map` of `rationalizer.ops`, for one text. Scores are of
the words that can be selected; ties are broken as in Python. */

const IMPOSSIBLE = -1e300;
const [MUST, NEVER] = [1, -1];
const [SKIP, START, CONTINUE] = [0, 1, 2];
const MAX_VALUES = 2 ** 26; // of 8 bytes

/* Maximize s·y + Σ r_i y_i y_{i+1} s.t. least ≤ Σy ≤ budget. Ties: fewer words, then earlier ones. */
export function bestSequence(s, r, least, budget) {
  const n = s.length;
  least = Math.min(least, n);
  budget = Math.min(budget, n);
  const back = new Uint8Array(n * (budget + 1));
  const value = [0, 1, 2, 3].map(() => new Float64Array(budget + 1).fill(IMPOSSIBLE));
  value[0][0] = value[2][0] = 0;
  let edge = 0;
  for (let t = 0; t < n; t++) {
    const [zero, one] = t & 1 ? [value[2], value[3]] : [value[0], value[1]];
    const [nextZero, nextOne] = t & 1 ? [value[0], value[1]] : [value[2], value[3]];
    for (let k = 1; k <= Math.min(t + 1, budget); k++) {
      const [off, on, fresh, joined] = [zero[k], one[k], zero[k - 1], one[k - 1] + edge];
      nextZero[k] = Math.max(on, off);
      nextOne[k] = s[t] + Math.max(joined, fresh);
      back[t * (budget + 1) + k] = (on > off ? 1 : 0) | (joined > fresh ? 2 : 0);
    }
    edge = r[t];
  }
  const ends = n & 1 ? [value[2], value[3]] : [value[0], value[1]];
  let [best, used, bit] = [least ? -Infinity : 0, 0, 0];
  for (let k = Math.max(least, 1); k <= budget; k++) {
    for (const last of [0, 1]) if (ends[last][k] > best) [best, used, bit] = [ends[last][k], k, last];
  }
  const y = new Uint8Array(n);
  for (let t = n - 1; t >= 0; t--) {
    y[t] = bit;
    const step = back[t * (budget + 1) + used];
    used -= bit;
    bit = (step >> bit) & 1;
  }
  return y;
}

/* The words with the highest scores; ties go to earlier ones. */
export function bestWords(s, budget) {
  const order = [...s.keys()].sort((a, b) => s[b] - s[a] || a - b);
  const y = new Uint8Array(s.length);
  for (const k of order.slice(0, budget)) y[k] = 1;
  return y;
}

/* Scores with which one more word outweighs any difference between the scores of all others. */
export function preferMoreWords(s, all, budget) {
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return s.map((score) => score - low + (high - low + 1) * (budget + 1));
}

/* `bestSequence` under constraints; null if no selection satisfies them. `constraints` may have spans, shortest, longest,
unit, fixed, group and perGroup, as the arguments of `ops.spans_map`. */
export function bestSpans(s, transition, budget, constraints) {
  const { spans, shortest = 1, longest, unit, fixed, group } = constraints;
  const onlyFixed = spans == null && shortest === 1 && longest == null && !unit && !group;
  return onlyFixed ? bestAroundFixed(s, transition, budget, fixed) : bestPath(s, transition, budget, constraints);
}

/* Words that must or must not be selected, and no other constraint: the problem on the free words. */
function bestAroundFixed(s, transition, budget, fixed) {
  if (!fixed) return bestSequence(s, s.map(() => transition), 0, budget);
  const n = s.length;
  const left = budget - fixed.filter((one) => one === MUST).length;
  if (left < 0) return null;
  const free = [...fixed.keys()].filter((i) => !fixed[i]);
  const bonus = (i) => (i + 1 < n && fixed[i + 1] === MUST ? transition : 0) + (i && fixed[i - 1] === MUST ? transition : 0);
  const edges = free.map((i) => (left > 1 && i + 1 < n && !fixed[i + 1] ? transition : 0));
  const y = bestSequence(Float64Array.from(free, (i) => s[i] + bonus(i)), edges, 0, left);
  const all = Uint8Array.from(fixed, (one) => one === MUST);
  free.forEach((i, k) => (all[i] = y[k]));
  return all;
}

/* Words that are selected together form a block: {head, required, startsGroup, crosses, before, after}, the latter two
being its words in the group in which it starts and in the one in which it ends. */
function blocksOf(n, { unit, fixed, group, perGroup = n }) {
  const blocks = [];
  let possible = true;
  for (let i = 0; i < n; i++) {
    const newGroup = group && i > 0 && group[i] !== group[i - 1];
    if (i === 0 || !unit || unit[i] !== unit[i - 1]) {
      blocks.push({ head: i, size: 0, required: 0, startsGroup: newGroup, crosses: false, before: 0, after: 0 });
    } else if (newGroup) Object.assign(blocks.at(-1), { crosses: true, after: 0 });
    const block = blocks.at(-1);
    block.size += 1;
    block.after += 1;
    if (!block.crosses) block.before += 1;
    for (const required of [fixed?.[i] ?? 0, block.after > perGroup ? NEVER : 0]) {
      if (!required) continue;
      if (block.required === -required) possible = false;
      block.required = required;
    }
  }
  return { blocks, possible };
}

/* Bounds on the number of selected words, and the size of the largest group. */
function wordBound(blocks, n, group, perGroup) {
  let [free, room, inGroup, largest] = [0, 0, 0, 0];
  for (const { required, size } of blocks) if (required !== NEVER) free += size;
  for (let i = 0; i < n; i++) {
    inGroup = i > 0 && (!group || group[i] === group[i - 1]) ? inGroup + 1 : 1;
    if (inGroup <= perGroup) room += 1;
    largest = Math.max(largest, inGroup);
  }
  return [Math.min(free, room), largest];
}

/* Viterbi over states (number of spans, length of the current span, words in the current group) and numbers of words;
see `ops/kernels/constraint_graph_cpu.py`. */
function bestPath(s, transition, budget, constraints) {
  const n = s.length;
  const { blocks, possible } = blocksOf(n, constraints);
  const perGroup = Math.min(constraints.perGroup ?? n, n);
  const [words, largestGroup] = wordBound(blocks, n, constraints.group, perGroup);
  const spans = Math.min(constraints.spans ?? n, n);
  budget = Math.min(budget, n, words);
  const longest = Math.min(constraints.longest ?? Infinity, budget);
  budget = Math.min(budget, spans * longest);
  const shortest = Math.min(constraints.shortest ?? 1, budget + 1);
  const anyLength = longest >= budget;
  const cap = anyLength ? shortest : longest;
  const countSpans = spans < Math.floor(budget / shortest);
  const countGroup = perGroup < Math.min(budget, largestGroup);
  const lengths = cap + 1;
  const uses = countGroup ? perGroup + 1 : 1;
  const states = (countSpans ? spans + 1 : 1) * lengths * uses;
  if (states * (blocks.length + 1) * (budget + 1) > MAX_VALUES) {
    throw new Error("these constraints together need too much memory; reduce the spans, their lengths, or the budget");
  }
  const lengthOf = (state) => Math.floor(state / uses) % lengths;
  const isClosed = (state) => lengthOf(state) === 0 || lengthOf(state) >= shortest;
  const width = budget + 1;
  const layers = []; // of each block: its arcs, and the values of the states after it
  let [low, high] = [new Int32Array(states).fill(width), new Int32Array(states).fill(-1)];
  if (possible) low[0] = high[0] = 0;
  let value = new Float64Array(states * width).fill(-Infinity);
  value[0] = 0;
  for (const block of blocks) {
    const gain = [0, s[block.head], 0];
    for (let i = block.head + 1; i < block.head + block.size; i++) gain[START] += s[i] + transition;
    gain[CONTINUE] = gain[START] + (block.head > 0 ? transition : 0);
    const arcs = [];
    const [nextLow, nextHigh] = [new Int32Array(states).fill(width), new Int32Array(states).fill(-1)];
    const add = (state, goal, kind, size) => {
      arcs.push([state, goal, kind]);
      nextLow[goal] = Math.min(nextLow[goal], low[state] + size);
      nextHigh[goal] = Math.max(nextHigh[goal], Math.min(high[state] + size, budget));
    };
    for (let state = 0; state < states; state++) {
      if (low[state] > high[state]) continue;
      const length = lengthOf(state);
      const started = Math.floor(state / uses / lengths);
      let used = block.startsGroup ? 0 : state % uses;
      if (block.required !== MUST && isClosed(state)) {
        add(state, started * lengths * uses + (block.crosses ? 0 : used), SKIP, 0);
      }
      const span = countSpans && length === 0 ? started + 1 : started;
      const run = anyLength ? Math.min(length + block.size, cap) : length + block.size;
      used = countGroup ? used + block.before : 0;
      const fits = run <= cap && span <= spans && used <= perGroup && low[state] + block.size <= budget;
      if (block.required === NEVER || !fits) continue;
      used = countGroup && block.crosses ? block.after : used;
      add(state, (span * lengths + run) * uses + used, length === 0 ? START : CONTINUE, block.size);
    }
    const next = new Float64Array(states * width).fill(-Infinity);
    for (const [state, goal, kind] of arcs) {
      const size = kind === SKIP ? 0 : block.size;
      for (let k = nextLow[goal]; k <= nextHigh[goal]; k++) {
        const total = k >= size ? value[state * width + k - size] + gain[kind] : -Infinity;
        if (total > next[goal * width + k]) next[goal * width + k] = total;
      }
    }
    layers.push({ ...block, arcs, gain, low, high, value });
    [low, high, value] = [nextLow, nextHigh, next];
  }
  let [best, at, count] = [-Infinity, -1, 0];
  for (let state = 0; state < states; state++) {
    for (let k = low[state]; isClosed(state) && k <= high[state]; k++) {
      const total = value[state * width + k];
      if (total > best || (total === best && k < count)) [best, at, count] = [total, state, k];
    }
  }
  if (best === -Infinity) return null;
  const y = new Uint8Array(n);
  for (const layer of layers.reverse()) {
    const total = value[at * width + count];
    for (const [state, goal, kind] of layer.arcs) {
      const k = kind === SKIP ? count : count - layer.size;
      if (goal !== at || k < layer.low[state] || k > layer.high[state]) continue;
      if (layer.value[state * width + k] + layer.gain[kind] !== total) continue;
      if (kind !== SKIP) y.fill(1, layer.head, layer.head + layer.size);
      [at, count] = [state, k];
      break;
    }
    value = layer.value;
  }
  return y;
}
