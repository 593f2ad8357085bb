/* Budgets: "20%", "5", "18% on average, 8% to 35%"; `rationalizer.text.budget`. */

import { length } from "./words.js";

const ROUNDING = 1e-9; // of a product of a share and a number of words
const REMEDY = "write a share such as 20% or 0.2, a number of words such as 5, or an average such as 18% on average, 8% to 35%";

export class BudgetError extends Error {}

const fail = (text) => {
  throw new BudgetError(`a budget was expected, got “${length(text) > 60 ? `${text.slice(0, 60)}…` : text}”; ${REMEDY}.`);
};

const rounded = (share) => Number(share.toFixed(8));

function share(text, least = Number.MIN_VALUE) {
  const isPercent = text.endsWith("%");
  const digits = isPercent ? text.slice(0, -1) : text;
  const amount = rounded(Number(digits) / (isPercent ? 100 : 1));
  if (!/^[\d.]+(?:e-?\d+)?$/i.test(digits) || !(amount >= least && amount <= 1)) fail(text);
  return amount;
}

/* {kind: "share", "count" or "average", amount, least, most}. */
export function parseBudget(text) {
  text = text.trim();
  const average = /^(\S+) on average(?:, *(\S+) to (\S+))?$/.exec(text);
  if (average) {
    const amount = share(average[1]);
    const [least, most] = average[2] ? [share(average[2], 0), share(average[3])] : [amount / 2, Math.min(2 * amount, 1)];
    if (!(least <= amount && amount <= most)) fail(text);
    return { kind: "average", amount, least: rounded(least), most: rounded(most) };
  }
  if (!/^\d+$/.test(text)) return { kind: "share", amount: share(text) };
  return Number(text) >= 1 ? { kind: "count", amount: Number(text) } : fail(text);
}

/* The largest number of words, of so many that can be selected. */
export function wordLimit({ kind, amount, most }, words) {
  if (kind === "count") return Math.min(amount, words);
  const allowed = kind === "average" ? Math.floor(words * most + ROUNDING) : roundHalfToEven(words * amount);
  return Math.min(Math.max(allowed, 1), words);
}

/* Of an average budget: the smallest number of words, and the number to subtract from the scores. */
export function averageBounds(budget, words, table) {
  const { shares, multipliers } = usualBounds(budget, table) ? table.default_bounds : table;
  const least = Math.min(Math.max(Math.ceil(words * budget.least - ROUNDING), 1), wordLimit(budget, words));
  return { least, multiplier: interpolate(budget.amount, shares, multipliers) };
}

/* Whether the bounds are the default ones of the average, and not those of the training. */
function usualBounds({ amount, least, most }, table) {
  if (!table.default_bounds || (least === table.least && most === table.most)) return false;
  return least === rounded(amount / 2) && most === rounded(Math.min(2 * amount, 1));
}

function roundHalfToEven(x) {
  const below = Math.floor(x);
  return x - below === 0.5 ? below + (below % 2) : Math.round(x);
}

/* As numpy.interp: constant outside the table. */
function interpolate(x, xs, ys) {
  const k = xs.findIndex((one) => one > x);
  if (k === 0) return ys[0];
  if (k < 0) return ys.at(-1);
  return ys[k - 1] + ((ys[k] - ys[k - 1]) / (xs[k] - xs[k - 1])) * (x - xs[k - 1]);
}
