"use strict";

const PAUSE = 180; // milliseconds without a change before a request
const RETRY = 2000; // milliseconds before the next attempt if the server does not answer

const byId = (id) => document.getElementById(id);
const state = {
  models: [],
  limits: { characters: Infinity },
  examples: [], // texts, or pairs of texts, to choose from
  shown: [], // names of the selected models
  budget: null, // in the API's form; null: each model's own
  constraints: null, // likewise, as {constraint, words}
  typed: null, // a constraint that was typed and not yet accepted, and the constraints before it
  timer: 0,
  asking: null, // AbortController of the running requests
};

/* Create an element with text and attributes; text never becomes markup. */
function make(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const model = (name) => state.models.find((candidate) => candidate.name === name);
const showsPairs = () => model(state.shown[0]).pairs; // all selected models are of one kind
const fields = () => (showsPairs() ? [byId("premise"), byId("hypothesis")] : [byId("text")]);
const texts = () => Object.fromEntries(fields().map((field) => [field.id, field.value]));
const length = (field) => [...field.value].length; // in characters, as the server counts them
const percent = (share) => `${+(100 * share).toFixed(1)}%`;
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/* The unit distinguishes 1 (one word) from 1.0 (the whole text). */
function describeBudgetValue({ budget, budget_unit: unit, least, most }) {
  if (unit === "count") return `up to ${plural(budget, showsPairs() ? "pair" : "word")}`;
  const share = percent(budget);
  if (unit === "average") {
    const bounds = `${percent(least)} to ${percent(most)}`;
    return `${share} on average, ${bounds} of ${showsPairs() ? "the shorter" : "each"} text`;
  }
  if (unit === "enough") return `as few as are enough, up to ${share}`;
  return showsPairs() ? `pairs for up to ${share} of the shorter text` : `up to ${share} of the words`;
}

/* ---- requests ---- */

function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return request(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

function requestBody(name) {
  const body = { ...texts(), model: name };
  if (state.budget !== null && model(name).follows_budget) body.budget = budgetFor(model(name));
  if (state.constraints !== null && model(name).offered.length) {
    body.constraints = state.constraints.map(({ constraint }) => constraint);
  }
  return body;
}

/* A model that was trained with a fixed budget follows no average. */
function budgetFor({ budget_unit: unit }) {
  const isAverage = byId("budget").dataset.unit === "average";
  return isAverage && unit !== "average" ? `${byId("budget").value}%` : state.budget;
}

function explainSoon(pause = PAUSE) {
  clearTimeout(state.timer);
  state.timer = setTimeout(explain, pause);
}

async function explain() {
  clearTimeout(state.timer);
  state.asking?.abort();
  const ready = fields().every((field) => field.value.trim());
  measure();
  fitFields();
  markExample();
  if (!ready || fields().some((field) => length(field) > state.limits.characters)) {
    clear();
    return;
  }
  const asking = new AbortController();
  state.asking = asking;
  byId("results").classList.add("stale");
  try {
    const answers = await Promise.all(
      state.shown.map(async (name) => {
        const body = requestBody(name);
        return { body, answer: await (await post("explain", { ...body, html: true }, asking.signal)).json() };
      }),
    );
    if (state.asking !== asking) return;
    byId("results").replaceChildren(...answers.map(({ body, answer }) => card(body, answer)));
    byId("waiting").hidden = true;
    byId("status").textContent = answers.map(({ answer }) => spoken(answer)).join(" ");
    state.typed = null;
    showProblem("");
  } catch (error) {
    if (error.name === "AbortError") return;
    if (state.typed !== null && error.field === "constraints") rejectTyped(error);
    else clear(describeError(error), error.field);
    if (isTransient(error)) explainSoon(RETRY);
  } finally {
    if (state.asking === asking) byId("results").classList.remove("stale");
  }
}

/* fetch throws a TypeError if the server does not answer. */
const describeError = (error) => (error instanceof TypeError ? "The server does not answer; trying again." : error.message);
const isTransient = (error) => error instanceof TypeError || error.status === 503;

function clear(problem = "", field = "") {
  byId("results").replaceChildren();
  byId("status").textContent = "";
  showProblem(problem, field);
  byId("waiting").hidden = !byId("problem").hidden;
  byId("waiting").textContent = problem ? "No explanation: see the message beside the form." : "The explanation appears here.";
}

/* Show a message beside the control that caused it, given by the request's field; by default above the results. */
function showProblem(message, field = "") {
  const controls = { budget: "budget", constraints: "constraints", text: "text", premise: "text", hypothesis: "text" };
  const place = controls[field] ? `${controls[field]}-problem` : "problem";
  for (const element of document.querySelectorAll(".problem")) {
    const shown = element.id === place ? message : "";
    if (element.textContent !== shown) element.textContent = shown; // screen readers repeat changed text only
    element.hidden = !shown;
  }
  if (message && place !== "problem") {
    if (byId(place).closest("details")) byId("settings").open = true;
    byId(place).scrollIntoView({ block: "nearest" });
  }
}

/* ---- results ---- */

function amount(explanation) {
  if (showsPairs()) return `${plural(explanation.pairs.length, "pair")} of words aligned`;
  const words = explanation.selected.filter((_, k) => explanation.counted[k]);
  return `${words.filter(Boolean).length} of ${plural(words.length, "word")} read`;
}

function spoken({ model: name, explanations: [explanation] }) {
  let { label } = explanation;
  if (typeof label === "number") label = +label.toPrecision(4);
  if (Array.isArray(label)) label = label.length > FEW_LABELS ? `${label.length} labels` : label.join(", ") || "no label";
  const ofOneClass = Object.keys(explanation.probabilities ?? {}).length === 1; // then the label has no information
  return `${name}: ${ofOneClass ? "" : `${label}, `}${amount(explanation)}.`;
}

function card(body, answer) {
  const [explanation] = answer.explanations;
  const element = make("article", "", { class: "card" });
  const heading = make("h2", `${answer.model} `);
  const { method } = model(answer.model);
  const facts = [method, budgetNote(answer), ...answer.constraints].filter((fact) => fact !== answer.model);
  heading.append(make("span", facts.join(", "), { class: "method" }));
  const drawing = make("div", "", { class: "drawing" });
  drawing.innerHTML = explanation.html; // from the server, which escapes the text
  for (const frame of drawing.querySelectorAll(".rz-drawing")) frame.tabIndex = 0; // scrollable by keyboard
  element.append(heading, drawing, ...labelSearch(explanation), make("p", amount(explanation), { class: "summary" }), downloads(body, answer));
  return element;
}

function budgetNote(answer) {
  return model(answer.model).follows_budget ? describeBudgetValue(answer) : "no budget";
}

/* ---- the form ---- */

function measure() {
  const longest = Math.max(...fields().map(length));
  const limit = state.limits.characters;
  const hint = byId("length");
  hint.classList.toggle("over", longest > limit);
  if (longest > limit) hint.textContent = `${longest} characters; the maximum is ${limit}. Shorten the text.`;
  else hint.textContent = longest > limit / 2 ? `${longest} of ${limit} characters` : "";
}

/* Fields are as high as their texts; a browser that cannot do that by itself gets their heights. */
function fitFields() {
  if (CSS.supports("field-sizing", "content")) return;
  for (const field of fields()) {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight + field.offsetHeight - field.clientHeight}px`;
  }
}

function setUpModels() {
  const group = byId("models");
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
  if (state.shown.length && showsPairs() !== model(names[0]).pairs) state.constraints = null; // pairs have other constraints
  state.shown = names;
  setUpKind();
  setUpBudget();
  setUpConstraints();
  explainSoon(0);
}

/* Show the fields and examples for single texts, or for pairs. */
function setUpKind() {
  const pairs = showsPairs();
  byId("pair").hidden = !pairs;
  byId("single").hidden = pairs;
  byId("lead").textContent = pairs
    ? "A classifier of pairs that shows which words it compared."
    : "A classifier that reads only the words it shows.";
  setUpExamples(state.examples.filter((example) => Array.isArray(example) === pairs));
}

function setUpBudget() {
  const followers = state.shown.map(model).filter((candidate) => candidate.follows_budget);
  const slider = byId("budget");
  byId("budgets").hidden = !followers.length;
  if (!followers.length) return;
  const others = state.shown.map(model).filter((candidate) => !candidate.follows_budget);
  byId("why").textContent = others.length
    ? `${others.map(({ name }) => name).join(" and ")} has no budget.`
    : "How much the model may select. Changing it needs no training.";
  const own = followers[0];
  const { budget, budget_unit: unit } = own;
  if (slider.dataset.unit !== unit) state.budget = null; // 30% is not 30 words
  slider.dataset.unit = unit;
  state.certainty = own.certainty;
  byId("enough").parentElement.hidden = !["share", "enough"].includes(unit);
  if (state.budget === null) byId("enough").checked = unit === "enough";
  slider.max = unit === "count" ? Math.max(20, 3 * budget) : 100;
  byId("least").textContent = unit === "count" ? slider.min : `${slider.min}%`;
  byId("most").textContent = unit === "count" ? slider.max : `${slider.max}%`;
  if (state.budget === null) slider.value = unit === "count" ? budget : Math.round(100 * budget);
  describeBudget(unit, own);
}

/* The bounds that the server gives an average without bounds. */
const defaultBounds = (average) => ({ least: average / 2, most: Math.min(1, 2 * average) });

function describeBudget(unit, own) {
  const slider = byId("budget");
  const moved = unit === "count" ? Number(slider.value) : Number(slider.value) / 100;
  const shown = byId("enough").checked ? "enough" : unit === "enough" ? "share" : unit;
  const value = state.budget === null ? own : { budget: moved, ...defaultBounds(moved) };
  const words = describeBudgetValue({ ...value, budget_unit: shown });
  byId("amount").textContent = words;
  slider.setAttribute("aria-valuetext", words);
  byId("reset").hidden = state.budget === null;
  summarizeSettings();
}

/* What the folded settings are. */
function summarizeSettings() {
  const able = state.shown.map(model).filter(({ offered }) => offered.length);
  const active = able.length ? state.constraints ?? able[0].constraints : [];
  const parts = [byId("budgets").hidden ? "" : byId("amount").textContent, ...active.map(({ words }) => words)];
  byId("chosen").textContent = parts.filter(Boolean).join(", ");
  byId("settings").hidden = byId("budgets").hidden && byId("constraints").hidden;
}

function changeBudget() {
  const slider = byId("budget");
  const { unit } = slider.dataset;
  // A share is sent as text: the number 1 would mean one word.
  const share = unit === "average" ? `${slider.value}% on average` : `${slider.value}%`;
  const certain = state.certainty === undefined ? "" : `, ${+(100 * state.certainty).toFixed(6)}% certain`;
  if (byId("enough").checked) state.budget = `enough, at most ${share}${certain}`;
  else state.budget = unit === "count" ? Number(slider.value) : share;
  describeBudget(unit);
  explainSoon(60);
}

/* Show the offered constraints, then the model's own and added ones; the pressed ones are active. */
function setUpConstraints() {
  const able = state.shown.map(model).filter(({ offered }) => offered.length);
  byId("constraints").hidden = !able.length;
  if (!able.length) return;
  const active = state.constraints ?? able[0].constraints;
  const names = new Set(active.map(({ constraint }) => constraint));
  const known = new Map([...able[0].offered, ...active].map((each) => [each.constraint, each]));
  byId("offers").replaceChildren(
    ...[...known.values()].map((each) => {
      const pressed = names.has(each.constraint);
      const button = make("button", each.words, { type: "button", "aria-pressed": pressed, title: each.constraint });
      button.addEventListener("click", () => {
        const others = active.filter(({ constraint }) => constraint !== each.constraint);
        setConstraints(pressed ? others : [...others, each]);
        byId("offers").querySelector(`[title="${CSS.escape(each.constraint)}"]`)?.focus();
      });
      return button;
    }),
  );
  byId("own").hidden = state.constraints === null;
  summarizeSettings();
  byId("other").placeholder = showsPairs() ? "such as never-align=words:a/b" : "such as must=words:not";
}

function setConstraints(constraints) {
  state.constraints = constraints;
  state.typed = null;
  setUpConstraints();
  explainSoon(0);
}

function addConstraint() {
  const constraint = byId("other").value.trim();
  if (!constraint) return;
  const able = state.shown.map(model).find(({ offered }) => offered.length);
  byId("other").value = "";
  const before = state.constraints;
  setConstraints([...(before ?? able.constraints), { constraint, words: constraint }]);
  state.typed = { constraint, before };
}

/* A constraint that cannot be read, or satisfied, is not added: it stays in its field, and the explanation stays. */
function rejectTyped(error) {
  const { constraint, before } = state.typed;
  state.typed = null;
  state.constraints = before;
  setUpConstraints();
  byId("other").value = constraint;
  showProblem(describeError(error), "constraints");
}

async function start() {
  const [described, offered] = await Promise.all(["models", "examples"].map(async (path) => (await request(path)).json()));
  state.models = described.models;
  state.limits = described.limits;
  state.corrections = described.corrections; // whether pairs can be corrected, or texts; undefined: neither
  state.examples = offered.examples;
  setUpDataset(described.dataset);
  setUpModels();
  for (const field of document.querySelectorAll("#question textarea")) {
    field.addEventListener("input", () => explainSoon());
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) explain();
    });
  }
  for (const id of ["budget", "enough"]) byId(id).addEventListener("input", changeBudget);
  byId("reset").addEventListener("click", () => {
    state.budget = null;
    setUpBudget();
    explainSoon(0);
    byId("budget").focus();
  });
  byId("add").addEventListener("click", addConstraint);
  byId("other").addEventListener("keydown", (event) => {
    if (event.key === "Enter") addConstraint();
  });
  byId("own").addEventListener("click", () => {
    setConstraints(null);
    byId("other").focus();
  });
  byId("question").addEventListener("submit", (event) => event.preventDefault());
  const wide = matchMedia("(min-width: 60rem)");
  const unfold = () => (byId("settings").open = wide.matches);
  wide.addEventListener("change", unfold);
  unfold();
  if (!matchMedia("(pointer: coarse)").matches) { // on a phone a focused field may open the keyboard
    fields()[0].focus({ preventScroll: true });
    fields()[0].select(); // typing replaces the example
  }
}

function startWithRetry() {
  start().then(
    () => showProblem(""),
    (error) => {
      showProblem(describeError(error));
      if (isTransient(error)) setTimeout(startWithRetry, RETRY);
    },
  );
}

startWithRetry();
