"use strict";

/* A search among the classes or labels of a prediction, of which the drawing shows the most probable ones only. */

const FEW_LABELS = 10; // with up to this many there is no search
const MOST_FOUND = 8;

/* A field that lists the labels whose names contain what is typed, with their probabilities and their own words. */
function labelSearch({ text, probabilities, labels, separate }) {
  const names = Object.keys(probabilities ?? {});
  if (names.length <= FEW_LABELS) return [];
  const words = new Map();
  if (separate) for (const { name, spans } of labels) words.set(String(name), spans.map((span) => slice(text, span)).join(" ... "));
  const field = make("input", "", { type: "search", placeholder: `Find one of ${names.length} labels`, "aria-label": "Find a label" });
  const list = make("ul", "", { class: "found", "aria-live": "polite" });
  field.addEventListener("input", () => {
    const typed = field.value.trim().toLowerCase();
    const found = typed ? names.filter((name) => name.toLowerCase().includes(typed)) : [];
    found.sort((one, other) => probabilities[other] - probabilities[one]);
    const rows = found.slice(0, MOST_FOUND).map((name) => row(name, probabilities[name], words.get(name)));
    const more = found.length - rows.length;
    if (more > 0) rows.push(make("li", `${more} more`));
    if (typed && !found.length) rows.push(make("li", "no such label"));
    list.replaceChildren(...rows);
  });
  return [field, list];
}

function row(name, p, words) {
  const item = make("li");
  const share = p > 0 && p < 0.001 ? "<0.1%" : `${(100 * p).toFixed(1)}%`;
  item.append(make("bdi", name), make("span", share), make("bdi", words ?? ""));
  return item;
}

/* Offsets count characters, as Python does, not UTF-16 units. */
const slice = (text, [start, end]) => [...text].slice(start, end).join("");
