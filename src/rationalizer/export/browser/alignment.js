/* The best alignment of two texts: `matching_map` and `monotone_matching_map` of `rationalizer.ops`, for one pair.
Scores are a row of numbers for each word of the premise; ties are broken as in Python. */

const [SKIP_ROW, SKIP_COLUMN, PAIR] = [0, 1, 2];

const transpose = (matrix, columns) => Array.from({ length: columns }, (_, j) => matrix.map((row) => row[j]));

/* Return 0/1 rows, or null if no alignment satisfies the constraints.

`scores` and `fixed` (1: must be aligned, -1: never) are (m, n); `masks` say which words can be aligned. `budget` is the
largest number of pairs (Infinity: any); with `complete` each word of the shorter text has a partner. `exactly` is a
number of pairs that replaces the budget; with `monotone` no two pairs cross. */
export function bestAlignment(scores, masks, { budget = Infinity, complete = false }, { exactly, monotone, fixed }) {
  const counts = masks.map((mask) => mask.filter(Boolean).length);
  const turned = complete && counts[0] > counts[1]; // so that rows are the shorter text
  if (exactly != null) budget = exactly;
  let total = exactly != null;
  if (complete && monotone) [budget, total, complete] = [Math.min(...counts), true, false];
  const problem = { scores, fixed, rowMask: masks[0], columnMask: masks[1], budget, total, complete, monotone };
  if (turned) {
    const n = masks[1].length;
    Object.assign(problem, { scores: transpose(scores, n), fixed: fixed && transpose(fixed, n) });
    [problem.rowMask, problem.columnMask] = [masks[1], masks[0]];
  }
  const z = solve(problem);
  return z && turned ? transpose(z, masks[0].length) : z;
}

function solve({ scores, fixed, rowMask, columnMask, budget, total, complete, monotone }) {
  const m = rowMask.length;
  const n = columnMask.length;
  const z = Array.from({ length: m }, () => new Uint8Array(n));
  const aligned = [];
  for (let i = 0; fixed && i < m; i++) {
    for (let j = 0; j < n; j++) if (fixed[i][j] === 1 && rowMask[i] && columnMask[j]) aligned.push([i, j]);
  }
  const crosses = (i, j) => monotone && aligned.some(([k, h]) => (i - k) * (j - h) < 0);
  const distinct = (side) => new Set(aligned.map((pair) => pair[side])).size === aligned.length;
  if (!distinct(0) || !distinct(1) || aligned.length > budget || aligned.some(([i, j]) => crosses(i, j))) return null;
  for (const [i, j] of aligned) z[i][j] = 1;
  const open = (mask, side) => [...mask.keys()].filter((k) => mask[k] && !aligned.some((pair) => pair[side] === k));
  const [rows, columns] = [open(rowMask, 0), open(columnMask, 1)];
  const left = budget - aligned.length;
  const shorter = Math.min(rows.length, columns.length);
  if ((total && left > shorter) || (complete && rows.length > columns.length)) return null;
  const score = (i, j) => (fixed && (fixed[i][j] || crosses(i, j)) ? -Infinity : scores[i][j]);
  const table = rows.map((i) => Float64Array.from(columns, (j) => score(i, j)));
  let pairs = [];
  if (monotone) pairs = monotonePairs(table, Math.min(left, shorter), total);
  else if (shorter > 0) {
    const limit = Math.min(left, shorter);
    const turned = rows.length < columns.length; // the longer side first
    pairs = bestMatching(turned ? transpose(table, columns.length) : table, total || complete ? limit : 0, limit);
    if (turned) pairs = pairs?.map(([a, b]) => [b, a]);
  }
  for (const [a, b] of pairs ?? []) z[rows[a]][columns[b]] = 1;
  return pairs ? z : null;
}

/* Successive shortest augmenting paths on (long, short) scores, of which -Infinity forbids a pair. Return the pairs;
null if there is no matching of `least` pairs. See `ops/kernels/matching_map_cpu.py`. */
function bestMatching(scores, least, limit) {
  const long = scores.length;
  const short = scores[0].length;
  const [u, v] = [new Float64Array(long), new Float64Array(short)];
  const [mate, partner] = [new Int32Array(long).fill(-1), new Int32Array(short).fill(-1)];
  const bestFree = (j) => {
    let best = -1;
    for (let i = 0; i < long; i++) if (mate[i] < 0 && (best < 0 || scores[i][j] > scores[best][j])) best = i;
    return best;
  };
  const source = Int32Array.from({ length: short }, (_, j) => bestFree(j)); // the best unmatched long node
  let level = -Infinity;
  for (let j = 0; j < short; j++) level = Math.max(level, scores[source[j]][j]);
  if (level === -Infinity && limit > 0) return least > 0 ? null : [];
  for (let size = 0; size < limit; size++) {
    const forced = size < least;
    const done = new Uint8Array(short);
    const before = source.slice(); // the long node from which the path enters a short one
    const distance = Float64Array.from(source, (i, j) => (i >= 0 ? level + v[j] - scores[i][j] : Infinity));
    let end = -1;
    let length = Infinity;
    for (;;) {
      let nearest = -1;
      for (let j = 0; j < short; j++) if (!done[j] && (nearest < 0 || distance[j] < distance[nearest])) nearest = j;
      length = distance[nearest];
      if (partner[nearest] < 0) {
        end = nearest;
        break;
      }
      if (!forced && length >= level) break;
      done[nearest] = 1;
      const i = partner[nearest];
      const base = length + u[i];
      for (let j = 0; j < short; j++) {
        const through = base + v[j] - scores[i][j];
        if (!done[j] && through < distance[j]) [distance[j], before[j]] = [through, i];
      }
    }
    if (forced && length === Infinity) return null;
    const noGain = !forced && length >= level;
    if (noGain) break;
    for (let j = 0; j < short; j++) {
      if (!done[j]) continue;
      v[j] += length - distance[j];
      u[partner[j]] -= length - distance[j];
    }
    level -= length;
    for (;;) {
      const i = before[end];
      const previous = mate[i];
      mate[i] = end;
      partner[end] = i;
      if (previous < 0) {
        u[i] = level;
        for (let j = 0; j < short; j++) if (source[j] === i) source[j] = bestFree(j);
        break;
      }
      end = previous;
    }
  }
  return [...mate.entries()].filter(([, j]) => j >= 0);
}

/* The dynamic program of sequence alignment, with a counter if the budget can bind; ties go to fewer pairs. See
`ops/kernels/monotone_matching_map_cpu.py`. */
function monotonePairs(table, budget, exact) {
  const rows = table.length;
  const columns = rows ? table[0].length : 0;
  const step = exact || budget < Math.min(rows, columns) ? 1 : 0;
  const states = step ? budget + 1 : 1;
  const back = new Uint8Array(rows * columns * states);
  const value = [0, 1].map(() => new Float64Array((columns + 1) * states).fill(-Infinity));
  for (let j = 0; j <= columns; j++) value[0][j * states] = 0;
  value[1][0] = 0;
  for (let i = 0; i < rows; i++) {
    const [above, here] = [value[i & 1], value[1 - (i & 1)]];
    for (let j = 0; j < columns; j++) {
      for (let k = 0; k < states; k++) {
        const up = above[(j + 1) * states + k];
        const left = here[j * states + k];
        const pair = k >= step ? above[j * states + k - step] + table[i][j] : -Infinity;
        const without = Math.max(up, left);
        here[(j + 1) * states + k] = Math.max(pair, without);
        back[(i * columns + j) * states + k] = pair > without ? PAIR : left > up ? SKIP_COLUMN : SKIP_ROW;
      }
    }
  }
  const ends = value[rows & 1].subarray(columns * states);
  let used = states - 1;
  if (step && !exact) {
    used = 0;
    for (let k = 1; k < states; k++) if (ends[k] > ends[used]) used = k;
  }
  if (ends[used] === -Infinity) return null;
  const pairs = [];
  for (let [i, j] = [rows - 1, columns - 1]; i >= 0 && j >= 0; ) {
    const move = back[(i * columns + j) * states + used];
    if (move === PAIR) {
      pairs.push([i, j]);
      used -= step;
    }
    if (move !== SKIP_COLUMN) i -= 1;
    if (move !== SKIP_ROW) j -= 1;
  }
  return pairs;
}
