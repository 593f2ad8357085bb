/* The page of a static site: it asks the worker for explanations and draws them. */

import { draw, labelOf, make } from "./drawing.js";
import { renderCard } from "./markdown.js";
import { parseBudget } from "./budget.js";

const PAUSE = 120; // milliseconds without a change before an explanation
const NAMES = { text: ["Text"], pair: ["Premise", "Hypothesis"] };

const byId = (id) => document.getElementById(id);
const percent = (share) => `${+(100 * share).toFixed(1)}%`;
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const site = { models: [], shared: {} };
const state = {
  model: null, // the facts of the selected model
  written: { text: [""], pair: ["", ""] }, // texts by kind
  budget: null, // in text form; null: the model's own
  constraints: null, // likewise, as {text, words}
  timer: 0,
  asked: 0, // explanations so far
  busy: false,
  ready: false, // whether the model is loaded
};

/* ---- the worker ---- */

const waiting = new Map(); // id -> {resolve, reject, report}
const worker = new Worker("worker.js", { type: "module" });
worker.addEventListener("message", ({ data: { id, loaded, total, problem, isUserError, answer } }) => {
  const call = waiting.get(id);
  if (loaded !== undefined) return void call.report?.(loaded, total);
  waiting.delete(id);
  if (problem === undefined) call.resolve(answer);
  else call.reject(Object.assign(new Error(problem), { isUserError }));
});
worker.addEventListener("error", () => {
  showProblem("This browser cannot run the model. Use Chrome 112, Firefox 116, Safari 17 or newer.");
});

let calls = 0;
function ask(call, message, report) {
  return new Promise((resolve, reject) => {
    waiting.set(++calls, { resolve, reject, report });
    worker.postMessage({ id: calls, call, ...message });
  });
}

/* ---- explanations ---- */

const kind = () => (state.model.pairs ? "pair" : "text");
const fields = () => [...byId("texts").querySelectorAll("textarea")];

function explainSoon(pause = PAUSE) {
  clearTimeout(state.timer);
  state.timer = setTimeout(explain, pause);
}

/* One explanation at a time; if something changes in between, the next one starts as soon as it is done. */
async function explain() {
  clearTimeout(state.timer);
  const asked = ++state.asked;
  if (state.busy || !state.ready) return;
  const texts = fields().map((field) => field.value);
  if (!texts.every((text) => text.trim())) return clear();
  const { name } = state.model;
  state.busy = true;
  byId("results").classList.add("stale");
  try {
    const request = { texts, budget: state.budget, constraints: state.constraints && state.constraints.map(({ text, own }) => (own ? { ...own, text } : text)) };
    const started = performance.now();
    const explanation = await ask("explain", { name, request });
    if (asked === state.asked) show(explanation, performance.now() - started);
  } catch (error) {
    if (asked === state.asked) clear(error.isUserError ? error.message : `The explanation failed: ${error.message}`);
  } finally {
    state.busy = false;
    byId("results").classList.remove("stale");
    if (asked !== state.asked) explain();
  }
}

function show(explanation, milliseconds) {
  const { model } = state;
  const { pairs, selected, texts, warnings } = explanation;
  const counted = texts[0].counted;
  const read = pairs ? "" : `${selected.filter((one, k) => one && counted[k]).length} of ${plural(counted.filter(Boolean).length, "word")} read`;
  const amount = pairs ? `${plural(pairs.length, "pair")} of words aligned` : read;
  const facts = [model.method.name, model.method.follows_budget ? describeBudget() : "no budget", ...active().map(({ words }) => words)];
  const heading = make("h2", [`${model.name} `, make("span", facts.join(", "), { class: "method" })]);
  const notes = warnings.filter((one) => !one.includes("knows none")).map((one) => make("p", one, { class: "hint" }));
  const summary = make("p", `${amount}, in ${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`, { class: "summary" });
  byId("results").replaceChildren(make("article", [heading, draw({ ...explanation, faithful: model.faithful }), ...notes, summary], { class: "card" }));
  byId("waiting").hidden = true;
  byId("status").textContent = `${labelOf(explanation)}, ${amount}.`;
  showProblem("");
}

function clear(problem = "") {
  byId("results").replaceChildren();
  byId("waiting").hidden = Boolean(problem);
  byId("note").textContent = state.model.pairs ? "Write two texts, or choose an example." : "Write a text, or choose an example.";
  byId("status").textContent = "";
  showProblem(problem);
}

function showProblem(message, retry) {
  const box = byId("problem");
  if (box.firstChild?.textContent !== message) box.replaceChildren(message); // screen readers repeat changed text only
  box.hidden = !message;
  if (!retry) return;
  const button = make("button", "Try again", { type: "button" });
  button.addEventListener("click", retry);
  box.append(" ", button);
}

/* ---- the form ---- */

async function choose(model) {
  Object.assign(state, { model, budget: null, constraints: null, ready: false });
  setUpTexts();
  setUpExamples();
  setUpBudget();
  setUpConstraints();
  byId("lead").textContent = model.facts.about ?? (model.pairs ? "A classifier of pairs that shows which words it compared." : "A classifier that reads only the words it shows.");
  byId("about").hidden = !model.card;
  byId("model-card").replaceChildren(...renderCard(model.card));
  byId("results").replaceChildren();
  showProblem("");
  byId("waiting").hidden = false;
  try {
    const { shared } = site;
    byId("progress").hidden = false;
    await ask("load", { facts: model, shared }, (loaded, total) => {
      if (model !== state.model) return;
      byId("note").textContent = `Loading the model: ${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
      Object.assign(byId("progress"), { max: total, value: loaded });
    });
    if (model !== state.model) return;
    byId("progress").hidden = true;
    state.ready = true;
    if (fields().every((field) => !field.value) && model.examples.length) fill(model.examples[0]);
    await explain();
  } catch (error) {
    if (model !== state.model) return;
    byId("waiting").hidden = true;
    showProblem(error.message, () => choose(model));
  }
}

function setUpTexts() {
  const names = NAMES[kind()];
  byId("texts").replaceChildren(
    ...names.map((name, k) => {
      const field = make("textarea", [], { id: `text-${k}`, rows: state.model.pairs ? 3 : 5, dir: "auto", spellcheck: "false" });
      field.placeholder = name === "Text" ? "Type or paste a text, or choose an example below." : `The ${["first", "second"][k]} text.`;
      field.value = state.written[kind()][k];
      field.addEventListener("input", () => {
        state.written[kind()][k] = field.value;
        explainSoon();
      });
      return make("div", [make("label", name, { for: field.id }), field], { class: "field" });
    }),
  );
}

function fill(example) {
  state.written[kind()] = [example].flat();
  fields().forEach((field, k) => (field.value = state.written[kind()][k]));
}

function setUpExamples() {
  const buttons = state.model.examples.map((example) => {
    const button = make("button", [example].flat().map((text) => make("span", text, { dir: "auto" })), { type: "button" });
    button.addEventListener("click", () => {
      fill(example);
      explain();
    });
    return button;
  });
  byId("examples").replaceChildren(byId("offered"), ...buttons);
  byId("examples").hidden = !buttons.length;
}

function describeBudget() {
  const { kind: unit, amount, least, most } = parseBudget(state.budget ?? state.model.budget);
  const unitName = state.model.pairs ? "pair" : "word";
  if (unit === "count") return `up to ${plural(amount, unitName)}`;
  const share = percent(amount);
  if (unit === "average") return `${share} on average, ${percent(least)} to ${percent(most)} of each text`;
  return state.model.pairs ? `pairs for up to ${share} of the shorter text` : `up to ${share} of the words`;
}

function setUpBudget() {
  const { kind: unit, amount } = parseBudget(state.budget ?? state.model.budget);
  const slider = byId("budget");
  byId("budgets").hidden = !state.model.method.follows_budget;
  slider.max = unit === "count" ? Math.max(20, 3 * parseBudget(state.model.budget).amount) : 100;
  slider.value = unit === "count" ? amount : Math.round(100 * amount);
  byId("amount").textContent = describeBudget();
  slider.setAttribute("aria-valuetext", describeBudget());
  byId("reset").hidden = state.budget === null;
}

function changeBudget(budget) {
  state.budget = budget;
  setUpBudget();
  explainSoon(0);
}

const active = () => state.constraints ?? state.model.constraints;

/* Show the offered constraints, then the model's own and added ones; the pressed ones are active. */
function setUpConstraints() {
  byId("constraints").hidden = !state.model.offered.length;
  const pressed = new Set(active().map(({ text }) => text));
  const known = new Map([...state.model.offered, ...state.model.constraints, ...active()].map((each) => [each.text, each]));
  byId("offers").replaceChildren(
    ...[...known.values()].map((each) => {
      const isActive = pressed.has(each.text);
      const button = make("button", each.words, { type: "button", "aria-pressed": isActive, title: each.text });
      button.addEventListener("click", () => {
        const others = active().filter(({ text }) => text !== each.text);
        changeConstraints(isActive ? others : [...others, each]);
        byId("offers").querySelector(`[title="${CSS.escape(each.text)}"]`)?.focus();
      });
      return button;
    }),
  );
  byId("own").hidden = state.constraints === null;
  byId("other").placeholder = state.model.pairs ? "such as never-align=words:a/b" : "such as must=words:not";
}

function changeConstraints(constraints) {
  state.constraints = constraints;
  setUpConstraints();
  explainSoon(0);
}

function addConstraint() {
  const text = byId("other").value.trim();
  if (!text) return;
  byId("other").value = "";
  changeConstraints([...active().filter((each) => each.text !== text), { text, words: text }]);
}

function setUpModels() {
  byId("models").hidden = site.models.length < 2;
  site.models.forEach((model, k) => {
    const input = make("input", [], { type: "radio", name: "model", id: `model-${k}` });
    input.checked = k === 0;
    input.addEventListener("change", () => choose(model));
    byId("models").append(input, make("label", model.name, { for: input.id }));
  });
}

async function start() {
  byId("note").textContent = "Loading …";
  byId("waiting").hidden = false;
  showProblem("");
  try {
    const response = await fetch("site.json");
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    Object.assign(site, await response.json());
  } catch (error) {
    byId("waiting").hidden = true;
    return showProblem(`The file site.json cannot be loaded (${error.message}). Start the page's server, or export the page again.`, start);
  }
  document.title = site.title;
  byId("title").textContent = site.title;
  setUpModels();
  choose(site.models[0]);
}

byId("budget").addEventListener("input", () => {
  const unit = parseBudget(state.model.budget).kind;
  const value = byId("budget").value;
  changeBudget({ count: value, share: `${value}%`, average: `${value}% on average` }[unit]);
});
byId("reset").addEventListener("click", () => {
  changeBudget(null);
  byId("budget").focus();
});
byId("add").addEventListener("click", addConstraint);
byId("other").addEventListener("keydown", (event) => event.key === "Enter" && addConstraint());
byId("own").addEventListener("click", () => {
  changeConstraints(null);
  byId("other").focus();
});
byId("question").addEventListener("submit", (event) => event.preventDefault());
start();
