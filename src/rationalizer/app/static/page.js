"use strict";

const PAUSE = 180; // milliseconds without a change before the models are asked

const at = (id) => document.getElementById(id);
const state = {
  models: [],
  limits: { characters: Infinity },
  examples: [], // texts, or pairs of texts, to choose from
  shown: [], // names of the models whose cards are on the page
  budget: null, // as the endpoint takes it; null: each model's own
  timer: 0,
  asking: null, // the AbortController of the requests under way
};

/* An element with text and attributes; text never becomes markup. */
function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const model = (name) => state.models.find((candidate) => candidate.name === name);
const inPairs = () => model(state.shown[0]).pairs; // models of one kind are shown together
const fields = () => (inPairs() ? [at("premise"), at("hypothesis")] : [at("text")]);
const texts = () => Object.fromEntries(fields().map((field) => [field.id, field.value]));
const length = (field) => [...field.value].length; // in characters, as the server counts them
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/* 1 may be the whole text or one word: the unit tells. */
function budgetInWords({ budget, budget_unit: unit }) {
  if (unit === "count") return `up to ${plural(budget, inPairs() ? "pair" : "word")}`;
  const share = `${+(100 * budget).toFixed(1)}%`;
  return inPairs() ? `pairs for up to ${share} of the shorter text` : `up to ${share} of the words`;
}

/* ---- asking ---- */

function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

function question(name) {
  const body = { ...texts(), model: name };
  if (state.budget !== null && model(name).follows_budget) body.budget = state.budget;
  return body;
}

function askSoon(pause = PAUSE) {
  clearTimeout(state.timer);
  state.timer = setTimeout(explain, pause);
}

async function explain() {
  clearTimeout(state.timer);
  state.asking?.abort();
  const ready = fields().every((field) => field.value.trim());
  measure();
  if (!ready || fields().some((field) => length(field) > state.limits.characters)) {
    clear();
    return;
  }
  const asking = new AbortController();
  state.asking = asking;
  at("results").classList.add("stale");
  try {
    const answers = await Promise.all(
      state.shown.map(async (name) => {
        const asked = question(name);
        return { asked, answer: await (await post("explain", { ...asked, html: true }, asking.signal)).json() };
      }),
    );
    if (state.asking !== asking) return;
    at("results").replaceChildren(...answers.map(({ asked, answer }) => card(asked, answer)));
    at("waiting").hidden = true;
    at("status").textContent = answers.map(({ answer }) => spoken(answer)).join(" ");
    showProblem("");
  } catch (error) {
    if (error.name === "AbortError") return;
    clear();
    showProblem(inWords(error));
  } finally {
    if (state.asking === asking) at("results").classList.remove("stale");
  }
}

const inWords = (error) => (error instanceof TypeError ? "The server does not answer; is it still running?" : error.message);

function clear() {
  at("results").replaceChildren();
  at("waiting").hidden = false;
  at("status").textContent = "";
  showProblem("");
}

function showProblem(message) {
  at("problem").textContent = message;
  at("problem").hidden = !message;
  if (message) at("waiting").hidden = true;
}

/* ---- showing ---- */

function amount(explanation) {
  if (inPairs()) return `${plural(explanation.pairs.length, "pair")} of words aligned`;
  const words = explanation.selected.filter((_, k) => explanation.counted[k]);
  return `${words.filter(Boolean).length} of ${plural(words.length, "word")} read`;
}

function spoken({ model: name, explanations: [explanation] }) {
  const label = typeof explanation.label === "number" ? +explanation.label.toPrecision(4) : explanation.label;
  return `${name}: ${label}, ${amount(explanation)}.`;
}

function card(asked, answer) {
  const [explanation] = answer.explanations;
  const element = make("article", "", { class: "card" });
  const heading = make("h2", `${answer.model} `);
  const { method } = model(answer.model);
  const facts = [method, budgetNote(answer)].filter((fact) => fact !== answer.model);
  heading.append(make("span", facts.join(", "), { class: "method" }));
  const drawing = make("div", "", { class: "drawing" });
  drawing.innerHTML = explanation.html; // drawn by the server, which escapes the text
  for (const frame of drawing.querySelectorAll(".rz-drawing")) frame.tabIndex = 0; // for keys to scroll it
  element.append(heading, drawing, make("p", amount(explanation), { class: "summary" }), downloads(asked, answer));
  return element;
}

function budgetNote(answer) {
  return model(answer.model).follows_budget ? budgetInWords(answer) : "follows no budget";
}

function downloads(asked, answer) {
  const row = make("div", "Download as ", { class: "downloads" });
  const files = {
    HTML: async () => (await post("render/html", asked)).blob(),
    SVG: async () => (await post("render/svg", asked)).blob(),
    JSON: async () => {
      const { html, ...explanation } = answer.explanations[0];
      const { model: name, budget, budget_unit } = answer;
      const kept = { model: name, budget, budget_unit, explanation };
      return new Blob([JSON.stringify(kept, null, 1)], { type: "application/json" });
    },
  };
  for (const [kind, load] of Object.entries(files)) {
    const name = `${answer.model}.${kind.toLowerCase()}`;
    const button = make("button", kind, { type: "button", "aria-label": `Download ${name}` });
    button.addEventListener("click", () => save(load, name));
    row.append(button);
  }
  return row;
}

async function save(load, name) {
  try {
    const address = URL.createObjectURL(await load());
    make("a", "", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  } catch (error) {
    showProblem(inWords(error));
  }
}

/* ---- the form ---- */

function measure() {
  const longest = Math.max(...fields().map(length));
  const limit = state.limits.characters;
  const hint = at("length");
  hint.classList.toggle("over", longest > limit);
  if (longest > limit) hint.textContent = `${longest} characters; at most ${limit} are read. Shorten the text.`;
  else hint.textContent = longest > limit / 2 ? `${longest} of ${limit} characters` : "";
}

function setUpModels() {
  const group = at("models");
  const names = state.models.map(({ name }) => name);
  const choices = names.map((name) => [name, [name]]);
  const ofOneKind = state.models.every(({ pairs }) => pairs === state.models[0].pairs);
  if (names.length > 1 && ofOneKind) choices.push(["Both", names]);
  choices.forEach(([title, shown], k) => {
    const input = make("input", "", { type: "radio", name: "model", id: `model-${k}` });
    input.checked = k === 0;
    input.addEventListener("change", () => show(shown));
    group.append(input, make("label", title, { for: `model-${k}` }));
  });
  group.hidden = names.length < 2;
  show([names[0]]);
}

function show(names) {
  state.shown = names;
  setUpKind();
  setUpBudget();
  askSoon(0);
}

/* What there is to fill in and to choose from for single texts, or for pairs. */
function setUpKind() {
  const pairs = inPairs();
  at("pair").hidden = !pairs;
  at("single").hidden = pairs;
  at("lead").textContent = pairs
    ? "A classifier of pairs that shows which words it compared."
    : "A classifier that reads only the words it shows.";
  setUpExamples(state.examples.filter((example) => Array.isArray(example) === pairs));
}

function setUpBudget() {
  const followers = state.shown.map(model).filter((candidate) => candidate.follows_budget);
  const slider = at("budget");
  slider.disabled = !followers.length;
  const others = state.shown.map(model).filter((candidate) => !candidate.follows_budget);
  at("why").textContent = others.length
    ? `What ${others.map((one) => `${one.name} (${one.method})`).join(" and ")} selects follows no budget.`
    : "How much the model may show; it chooses anew at once, without being trained again.";
  const { budget, budget_unit: unit } = followers[0] ?? model(state.shown[0]);
  if (slider.dataset.unit !== unit) state.budget = null; // 30% of the words are not 30 words
  slider.dataset.unit = unit;
  slider.max = unit === "count" ? Math.max(20, 3 * budget) : 100;
  if (state.budget === null) slider.value = unit === "count" ? budget : Math.round(100 * budget);
  describeBudget(unit, budget);
}

function describeBudget(unit, own) {
  const slider = at("budget");
  const moved = unit === "count" ? Number(slider.value) : Number(slider.value) / 100;
  const words = slider.disabled ? "" : budgetInWords({ budget: state.budget === null ? own : moved, budget_unit: unit });
  at("amount").textContent = words;
  slider.setAttribute("aria-valuetext", words);
  at("reset").hidden = state.budget === null || slider.disabled;
}

function moveBudget() {
  const slider = at("budget");
  const { unit } = slider.dataset;
  // A share is sent as text: the number 1 would be read as one word.
  state.budget = unit === "count" ? Number(slider.value) : `${slider.value}%`;
  describeBudget(unit);
  askSoon(60);
}

function setUpExamples(examples) {
  const group = at("examples");
  group.replaceChildren(at("offered"));
  for (const example of examples) {
    const values = inPairs() ? example : [example];
    const button = make("button", values.join(" / "), { type: "button", dir: "auto", title: values.join("\n") });
    button.addEventListener("click", () => {
      fields().forEach((field, k) => (field.value = values[k]));
      explain();
    });
    group.append(button);
  }
  group.hidden = !examples.length;
}

async function start() {
  const [described, offered] = await Promise.all(["models", "examples"].map(async (path) => (await ask(path)).json()));
  state.models = described.models;
  state.limits = described.limits;
  state.examples = offered.examples;
  setUpModels();
  for (const field of document.querySelectorAll("#question textarea")) {
    field.addEventListener("input", () => askSoon());
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) explain();
    });
  }
  at("budget").addEventListener("input", moveBudget);
  at("reset").addEventListener("click", () => {
    state.budget = null;
    setUpBudget();
    askSoon(0);
    at("budget").focus();
  });
  at("question").addEventListener("submit", (event) => event.preventDefault());
  fields()[0].focus();
}

start().catch((error) => showProblem(inWords(error)));
