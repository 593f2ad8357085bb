/* Explanations as elements of the page; the style sheet is that of `rationalizer.drawing`. */

const MAX_BARS = 5; // classes with a bar of their own
const SIZES = [16, 15, 14, 13]; // font sizes of a drawing; the first at which both texts fit on a line
const SVG = "http://www.w3.org/2000/svg";

/* Create an element with children and attributes; strings never become markup. */
export function make(tag, children = [], attributes = {}) {
  const element = document.createElement(tag);
  element.append(...[children].flat());
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const number = (value) => String(+value.toPrecision(4));

function percent(share) {
  if (share > 0 && share < 0.0005) return "<0.1%";
  if (share >= 0.9995 && share < 1) return ">99.9%";
  const isRounded = (share >= 0.005 && share < 0.995) || share === 0 || share === 1;
  return `${(100 * share).toFixed(isRounded ? 0 : 1)}%`;
}

/* Whether the model was trained on annotations without labels: its probability of 100% means nothing. */
const hasOneClass = ({ probabilities }) => probabilities?.length === 1;

export function labelOf({ label, probabilities }) {
  if (hasOneClass({ probabilities })) return "no label";
  return typeof label === "number" ? number(label) : label;
}

/* An explanation as a figure. */
export function draw(explanation) {
  const { texts, pairs } = explanation;
  const body = pairs ? alignment(explanation) : paragraph(texts[0], explanation.selected);
  return make("figure", [head(explanation), body, legend(explanation)], { class: "rationalizer" });
}

function head(explanation) {
  const { warnings, pairs } = explanation;
  const remarks = [];
  if (hasOneClass(explanation)) remarks.push(`the model has learned to ${pairs ? "align" : "select"} words, not to predict labels`);
  else if (warnings.some((one) => one.includes("knows none"))) remarks.push("a guess: the model knows none of the words");
  const remark = remarks.map((text) => make("span", text, { class: "rz-remark" }));
  const verdict = make("span", [make("bdi", labelOf(explanation), { class: "rz-label" }), ...remark], { class: "rz-verdict" });
  const probabilities = hasOneClass(explanation) ? [] : (explanation.probabilities ?? []);
  const ordered = [...probabilities].sort((a, b) => b[1] - a[1]);
  const rest = ordered.length > MAX_BARS + 1 ? ordered.splice(MAX_BARS) : [];
  if (rest.length) ordered.push([`${rest.length} others`, rest.reduce((sum, [, share]) => sum + share, 0)]);
  const bars = ordered.flatMap(([name, share]) => {
    const bar = make("span", [], { style: `width:${(100 * share).toFixed(1)}%` });
    return [make("bdi", name), make("span", bar, { class: "rz-track" }), make("span", percent(share), { class: "rz-percent" })];
  });
  return make("figcaption", [verdict, ...(bars.length ? [make("span", bars, { class: "rz-bars" })] : [])], { class: "rz-head" });
}

/* The text as it was written; neighbouring selected words form one highlight. */
function paragraph({ text, tokens, offsets, unknown }, selected) {
  const parts = [];
  let at = 0;
  let mark = null;
  tokens.forEach((token, k) => {
    const [start, end] = offsets[k];
    const gap = text.slice(at, start);
    const joins = mark && selected[k] && !gap.includes("\n");
    (joins ? mark.firstChild : { append: (one) => parts.push(one) }).append(gap);
    if (!joins) mark = selected[k] ? make("mark", make("span", [], { style: "--w:1" }), { class: "rz-selected", title: "read by the model" }) : null;
    if (mark && !joins) parts.push(mark);
    const word = unknown[k] ? make("i", token, { class: "rz-unknown", title: "unknown to the model" }) : token;
    if (mark) mark.firstChild.append(word);
    else parts.push(word);
    at = end;
  });
  return make("p", [...parts, text.slice(at)], { class: "rz-text", dir: "auto" });
}

function legend({ texts, pairs, selected, faithful }) {
  const isEmpty = pairs ? !pairs.length : !selected.some(Boolean);
  const sample = make("mark", make("span", "abc"), { class: "rz-selected" });
  const entries = isEmpty ? [[pairs ? "no words are aligned" : "no word was read by the model"]] : [[sample, pairs ? "aligned by the model" : "read by the model"]];
  if (texts.some(({ unknown }) => unknown.some(Boolean))) entries.push([make("i", "abc", { class: "rz-unknown" }), "unknown to the model"]);
  if (pairs && !faithful) entries.push(["the model also read the premise past the alignment"]);
  return make("ul", entries.map((entry) => make("li", entry)), { class: "rz-key" });
}

/* Both texts with curves between aligned words: as two lines or, if these do not fit, as two columns. */
function alignment({ texts, pairs }) {
  const words = texts.map(({ tokens, unknown }, side) =>
    tokens.map((token, k) => {
      const isAligned = pairs.some((pair) => pair[side] === k);
      const word = make("span", unknown[k] ? make("i", token, { class: "rz-unknown" }) : token, { style: "--w:1" });
      return make(isAligned ? "mark" : "span", word, { class: isAligned ? "word rz-selected" : "word" });
    }),
  );
  const sides = words.map((own, side) =>
    make("div", [make("span", ["premise", "hypothesis"][side], { class: "side-name" }), make("p", own.flatMap((word) => [word, " "]), { dir: "auto" })], { class: "side" }),
  );
  const curves = document.createElementNS(SVG, "svg");
  curves.setAttribute("aria-hidden", "true");
  const spoken = pairs.map(([i, j]) => `${texts[0].tokens[i]} with ${texts[1].tokens[j]}`).join(", ");
  const list = make("p", pairs.length ? `Aligned: ${spoken}.` : "", { class: "spoken" });
  const frame = make("div", [curves, ...sides, list], { class: "alignment" });
  new ResizeObserver(() => layOut(frame, sides, words, pairs, curves)).observe(frame);
  return frame;
}

function layOut(frame, sides, words, pairs, curves) {
  const fits = (size) => {
    frame.style.fontSize = `${size}px`;
    return sides.every((side) => side.lastChild.scrollWidth <= side.clientWidth);
  };
  frame.className = "alignment lines";
  const far = Math.max(0, ...pairs.map(([i, j]) => Math.abs(i - j)));
  frame.style.setProperty("--span", `${Math.min(64 + 4 * far, 110)}px`);
  if (!SIZES.some(fits)) {
    frame.className = "alignment columns";
    frame.style.fontSize = "";
  }
  const isColumns = frame.classList.contains("columns");
  const origin = frame.getBoundingClientRect();
  curves.replaceChildren(
    ...pairs.flatMap(([i, j]) => {
      const [a, b] = [words[0][i], words[1][j]].map((word) => word.getBoundingClientRect());
      const ends = isColumns
        ? [[a.right, (a.top + a.bottom) / 2], [b.left, (b.top + b.bottom) / 2]]
        : [[(a.left + a.right) / 2, a.bottom], [(b.left + b.right) / 2, b.top]];
      const [[x1, y1], [x2, y2]] = ends.map(([x, y]) => [x - origin.left, y - origin.top]);
      const bend = isColumns ? `${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2}` : `${x1} ${(y1 + y2) / 2} ${x2} ${(y1 + y2) / 2}`;
      const dot = (cx, cy) => shape("circle", { cx, cy, r: 3 });
      return [shape("path", { d: `M ${x1} ${y1} C ${bend} ${x2} ${y2}` }), dot(x1, y1), dot(x2, y2)];
    }),
  );
}

function shape(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
