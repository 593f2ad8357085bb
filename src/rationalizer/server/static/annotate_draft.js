"use strict";

/* Draws what the page has of a text: marked words, links, labels, words that must never count. */

function draw() {
  const never = new Set([...Object.values(task.never).flat(), ...draft.never].map((word) => word.toLowerCase()));
  const linked = lists.map((_, side) => new Set(draft.links.map((link) => link[side])));
  for (const list of lists) {
    for (const option of list.options) {
      const on = task.pairs ? linked[option.side].has(option.index) : draft.marks.has(option.k);
      option.classList.toggle("marked", on);
      option.classList.toggle("never", never.has(option.word));
      option.classList.toggle("picked", option === picked);
      option.setAttribute("aria-selected", on);
    }
  }
  drawLines(byId("lines"), lists, task.pairs ? draft.links : []);
  drawLinks();
  drawLabels();
  byId("texts").parentElement.classList.toggle("not-enough", draft.notEnough);
  byId("not-enough").setAttribute("aria-pressed", draft.notEnough);
  byId("undo").disabled = !earlier.length;
  byId("back").disabled = !done.some((id) => id !== shown.id);
  const words = make("span", "Never count: ");
  draft.never.forEach((word) => words.append(button(`${word} ×`, () => toggleNever(word), `Remove ${word}`)));
  byId("words-never").replaceChildren(words);
  byId("words-never").hidden = !draft.never.length;
}

function drawLinks() {
  const word = (side, index) => lists[side].options.find((option) => option.index === index).textContent;
  const items = draft.links.map(([i, j]) => {
    const [a, b] = [word(0, i), word(1, j)];
    const item = make("li");
    item.append(button(`${a} – ${b} ×`, () => toggleLink(i, j), `Remove the link ${a} – ${b}`));
    return item;
  });
  byId("links").replaceChildren(...items);
  byId("links").hidden = !task.pairs || !items.length;
}

/* None while there is not enough to decide; they come back without that. */
const chosenLabels = ({ label, notEnough }) => (notEnough ? [] : [label ?? []].flat().map(String));

function drawLabels() {
  const group = byId("labels");
  const chosen = new Set(chosenLabels(draft));
  if (task.task === "regression") {
    if (!group.querySelector("input")) {
      const field = make("input", "", { type: "number", step: "any", "aria-label": "Label" });
      field.addEventListener("change", () => change((next) => (next.label = field.value === "" ? null : Number(field.value))));
      group.append(field);
    }
    group.querySelector("input").value = draft.label ?? "";
    return;
  }
  group.hidden = !task.classes.length;
  if (group.children.length !== 1 + task.classes.length) {
    group.replaceChildren(group.firstElementChild, ...task.classes.map((name) => button(name, () => choose(name))));
    [...group.querySelectorAll("button")].slice(0, 9).forEach((choice, k) => choice.append(" ", make("kbd", k + 1)));
  }
  group.querySelectorAll("button").forEach((choice, k) => choice.setAttribute("aria-pressed", chosen.has(task.classes[k])));
}
