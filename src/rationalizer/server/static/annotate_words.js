"use strict";

/* Words that are marked by pointer or keyboard, and links between the words of two texts. */

const byId = (id) => document.getElementById(id);

/* Create an element with text and attributes; text never becomes markup. */
function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function button(text, action, name = text) {
  const element = make("button", text, { type: "button", "aria-label": name });
  element.addEventListener("click", action);
  return element;
}

/* Draw a text with its words as options of a list. Positions count characters, as Python does, not UTF-16 units. */
function wordList({ text, words }, side, name) {
  const characters = [...text];
  const list = make("p", "", { class: "words", role: "listbox", tabindex: "0", dir: "auto", "aria-label": name,
    "aria-multiselectable": "true" });
  let position = 0;
  words.forEach(([index, start, end], k) => {
    list.append(characters.slice(position, start).join(""));
    const word = characters.slice(start, end).join("");
    const option = make("span", word, { class: "word", role: "option", id: `w${side}-${k}`, "aria-selected": "false" });
    Object.assign(option, { side, k, index, start, end, word: word.toLowerCase() });
    list.append(option);
    position = end;
  });
  list.append(characters.slice(position).join(""));
  list.options = [...list.querySelectorAll(".word")];
  list.cursor = 0;
  return list;
}

function moveCursor(list, k) {
  list.options[list.cursor]?.classList.remove("cursor");
  list.cursor = Math.max(0, Math.min(list.options.length - 1, k));
  const option = list.options[list.cursor];
  option?.classList.add("cursor");
  option?.scrollIntoView({ block: "nearest" });
  list.setAttribute("aria-activedescendant", option?.id ?? "");
}

/* Call `on.start(word)`, `on.over(word)` while the pointer is down, and `on.end(word)` or `on.cancel()`. A touch that
   scrolls the page is cancelled by the browser. */
function followPointer(container, on) {
  let first = null;
  const wordAt = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest?.(".word") ?? null;
  container.addEventListener("pointerdown", (event) => {
    first = event.button === 0 ? event.target.closest(".word") : null;
    if (!first) return;
    event.preventDefault(); // no focus on the list yet: it would scroll
    first.parentElement.focus({ preventScroll: true });
    moveCursor(first.parentElement, first.k);
    on.start(first);
  });
  container.addEventListener("pointermove", (event) => {
    const word = first && wordAt(event);
    if (word) on.over(word);
  });
  window.addEventListener("pointerup", (event) => {
    if (first) on.end(wordAt(event));
    first = null;
  });
  window.addEventListener("pointercancel", () => {
    if (first) on.cancel();
    first = null;
  });
}

/* The character spans of the marked words; words that follow each other are in one span. */
function spansOf(options, marked) {
  const spans = [];
  options.forEach(({ k, start, end }) => {
    if (!marked.has(k)) return;
    if (marked.has(k - 1)) spans.at(-1)[1] = end;
    else spans.push([start, end]);
  });
  return spans;
}

function marksOf(options, spans) {
  const inside = ({ start, end }) => spans.some(([first, last]) => first < end && start < last);
  return new Set(options.filter(inside).map(({ k }) => k));
}

/* Draw the links as curves from the lower edge of a premise word to the upper edge of a hypothesis word. */
function drawLines(svg, [upper, lower], links) {
  const origin = svg.getBoundingClientRect();
  const curve = ([i, j]) => {
    const a = upper.options.find(({ index }) => index === i).getBoundingClientRect();
    const b = lower.options.find(({ index }) => index === j).getBoundingClientRect();
    const [x, y] = [a.x + a.width / 2 - origin.x, a.bottom - origin.y];
    const [u, v] = [b.x + b.width / 2 - origin.x, b.top - origin.y];
    const middle = (y + v) / 2;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", `M${x} ${y}C${x} ${middle} ${u} ${middle} ${u} ${v}`);
    return path;
  };
  svg.replaceChildren(...links.map(curve));
}

/* Mark, or unmark, all words from one to another. */
function markRange(marks, from, to, on) {
  for (let k = Math.min(from, to); k <= Math.max(from, to); k += 1) {
    if (on) marks.add(k);
    else marks.delete(k);
  }
}
