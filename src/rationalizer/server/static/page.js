"use strict";

const PAUSE = 180; // milliseconds without a change before the models are asked
const RETRY = 2000; // before a server that does not answer is asked again

const at = (id) => document.getElementById(id);
const state = {
  models: [],
  limits: { characters: Infinity },
  examples: [], // texts, or pairs of texts, to choose from
  shown: [], // names of the models whose cards are on the page
  budget: null, // as the endpoint takes it; null: each model's own
  constraints: null, // likewise, as {constraint, words}
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
  if (state.constraints !== null && model(name).offered.length) {
    body.constraints = state.constraints.map(({ constraint }) => constraint);
  }
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
    clear(inWords(error));
    if (passes(error)) askSoon(RETRY);
  } finally {
    if (state.asking === asking) at("results").classList.remove("stale");
  }
}

/* fetch throws a TypeError where nobody answers. */
const inWords = (error) => (error instanceof TypeError ? "The server does not answer; it will be asked again." : error.message);
const passes = (error) => error instanceof TypeError || error.status === 503;

function clear(problem = "") {
  at("results").replaceChildren();
  at("waiting").hidden = false;
  at("status").textContent = "";
  showProblem(problem);
}

function showProblem(message) {
  if (at("problem").textContent !== message) at("problem").textContent = message; // what stands there is not read out again
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
  let { label } = explanation;
  if (typeof label === "number") label = +label.toPrecision(4);
  const ofOneClass = Object.keys(explanation.probabilities ?? {}).length === 1; // then it says nothing
  return `${name}: ${ofOneClass ? "" : `${label}, `}${amount(explanation)}.`;
}

function card(asked, answer) {
  const [explanation] = answer.explanations;
  const element = make("article", "", { class: "card" });
  const heading = make("h2", `${answer.model} `);
  const { method } = model(answer.model);
  const facts = [method, budgetNote(answer), ...answer.constraints].filter((fact) => fact !== answer.model);
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
      const { model: name, budget, budget_unit, constraints } = answer;
      const kept = { model: name, budget, budget_unit, constraints, explanation };
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
  if (names.length > 1 && ofOneKind) choices.unshift(["Both", names]);
  choices.forEach(([title, shown], k) => {
    const input = make("input", "", { type: "radio", name: "model", id: `model-${k}` });
    input.checked = k === 0;
    input.addEventListener("change", () => show(shown));
    group.append(input, make("label", title, { for: `model-${k}` }));
  });
  group.hidden = names.length < 2;
  show(choices[0][1]);
}

function show(names) {
  if (state.shown.length && inPairs() !== model(names[0]).pairs) state.constraints = null; // others hold for pairs
  state.shown = names;
  setUpKind();
  setUpBudget();
  setUpConstraints();
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
  at("budgets").hidden = !followers.length;
  if (!followers.length) return;
  const others = state.shown.map(model).filter((candidate) => !candidate.follows_budget);
  at("why").textContent = others.length
    ? `What ${others.map(({ name }) => name).join(" and ")} selects follows no budget.`
    : "How much the model may show; it chooses anew at once, without being trained again.";
  const { budget, budget_unit: unit } = followers[0];
  if (slider.dataset.unit !== unit) state.budget = null; // 30% of the words are not 30 words
  slider.dataset.unit = unit;
  slider.max = unit === "count" ? Math.max(20, 3 * budget) : 100;
  if (state.budget === null) slider.value = unit === "count" ? budget : Math.round(100 * budget);
  describeBudget(unit, budget);
}

function describeBudget(unit, own) {
  const slider = at("budget");
  const moved = unit === "count" ? Number(slider.value) : Number(slider.value) / 100;
  const words = budgetInWords({ budget: state.budget === null ? own : moved, budget_unit: unit });
  at("amount").textContent = words;
  slider.setAttribute("aria-valuetext", words);
  at("reset").hidden = state.budget === null;
}

function moveBudget() {
  const slider = at("budget");
  const { unit } = slider.dataset;
  // A share is sent as text: the number 1 would be read as one word.
  state.budget = unit === "count" ? Number(slider.value) : `${slider.value}%`;
  describeBudget(unit);
  askSoon(60);
}

/* Those that the models shown offer, then those that are theirs or were added; one that is pressed holds. */
function setUpConstraints() {
  const able = state.shown.map(model).filter(({ offered }) => offered.length);
  at("constraints").hidden = !able.length;
  if (!able.length) return;
  const holding = state.constraints ?? able[0].constraints;
  const names = new Set(holding.map(({ constraint }) => constraint));
  const known = new Map([...able[0].offered, ...holding].map((each) => [each.constraint, each]));
  at("offers").replaceChildren(
    ...[...known.values()].map((each) => {
      const pressed = names.has(each.constraint);
      const button = make("button", each.words, { type: "button", "aria-pressed": pressed, title: each.constraint });
      button.addEventListener("click", () => {
        const others = holding.filter(({ constraint }) => constraint !== each.constraint);
        constrain(pressed ? others : [...others, each]);
        at("offers").querySelector(`[title="${CSS.escape(each.constraint)}"]`)?.focus();
      });
      return button;
    }),
  );
  at("own").hidden = state.constraints === null;
  at("other").placeholder = inPairs() ? "or never-align=words:a/b" : "another, such as must=words:not";
}

function constrain(constraints) {
  state.constraints = constraints;
  setUpConstraints();
  askSoon(0);
}

function addConstraint() {
  const constraint = at("other").value.trim();
  if (!constraint) return;
  const able = state.shown.map(model).find(({ offered }) => offered.length);
  at("other").value = "";
  constrain([...(state.constraints ?? able.constraints), { constraint, words: constraint }]);
}

async function start() {
  const [described, offered] = await Promise.all(["models", "examples"].map(async (path) => (await ask(path)).json()));
  state.models = described.models;
  state.limits = described.limits;
  state.examples = offered.examples;
  setUpDataset(described.dataset);
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
  at("add").addEventListener("click", addConstraint);
  at("other").addEventListener("keydown", (event) => {
    if (event.key === "Enter") addConstraint();
  });
  at("own").addEventListener("click", () => {
    constrain(null);
    at("other").focus();
  });
  at("question").addEventListener("submit", (event) => event.preventDefault());
  fields()[0].focus();
}

function tryStart() {
  start().then(
    () => showProblem(""),
    (error) => {
      showProblem(inWords(error));
      if (passes(error)) setTimeout(tryStart, RETRY);
    },
  );
}

tryStart();
