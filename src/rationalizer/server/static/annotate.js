"use strict";

const NAME = "rationalizer annotator"; // key in localStorage
const IDLE = 60_000; // milliseconds without an input that count as a pause

let task = null; // what the server says about the file
let person = "";
let queue = []; // ids left to do
let done = []; // ids done, the latest last
let shown = null; // the text on the page
let lists = []; // its words
let draft = null; // {label, marks, links, notEnough, never}
let earlier = []; // drafts before the last changes, as JSON
let picked = null; // a word of a pair whose partner comes next
let seconds = 0;
let latest = 0; // time of the last input
let moving = false; // whether a text is being saved or loaded
let neverIsSaved = true; // whether the server has the words of `draft.never`

const mine = (path) => `${path}?person=${encodeURIComponent(person)}`;

/* Run an action and show its error; a save that fails leaves everything on the page. */
async function attempt(action) {
  try {
    await action();
    byId("problem").hidden = true;
    return true;
  } catch (error) {
    byId("problem").textContent =
      error instanceof TypeError ? "The server does not answer. Nothing on this page is lost: try again." : error.message;
    byId("problem").hidden = false;
    return false;
  }
}

/* One step at a time: a second Enter must not save the next text before anybody has seen it. */
async function step(action) {
  if (moving) return;
  moving = true;
  await attempt(action);
  moving = false;
}

/* ---- the text ---- */

function show(text) {
  shown = text;
  lists = text.parts.map((part, side) => wordList(part, side, ["Words", "Words of the other text"][side]));
  byId("texts").replaceChildren(...lists, byId("lines"));
  byId("texts").classList.toggle("pair", task.pairs);
  const { own, given, suggested, model } = text;
  const indices = new Set(suggested?.words ?? []);
  const label = own?.label ?? given ?? suggestedLabel(model);
  draft = {
    label: task.task === "regression" && label !== null ? Number(label) : label,
    marks: own
      ? marksOf(lists[0].options, own.rationale_chars ?? [])
      : new Set(lists[0].options.filter(({ index }) => indices.has(index)).map(({ k }) => k)),
    links: (own ? own.alignment : suggested?.links) ?? [],
    notEnough: own?.not_enough ?? false,
    never: task.never[person] ?? [],
  };
  earlier = [];
  picked = null;
  seconds = own?.seconds ?? 0;
  latest = performance.now();
  const share = model?.probability == null ? "" : ` (${Math.round(100 * model.probability)}%)`;
  const what = task.pairs ? "its links are drawn" : "the words it selected are marked";
  byId("model").textContent = model ? `The model says ${[model.label].flat().join(", ") || "none"}${share}; ${what} at the start.` : "";
  byId("model").hidden = !model;
  byId("work").hidden = false;
  byId("finished").hidden = true;
  setNeverMode(false);
  byId("never").hidden = task.pairs;
  for (const list of lists) moveCursor(list, 0);
  draw();
  lists[0].focus({ preventScroll: true });
}

function suggestedLabel(model) {
  if (task.multi) return [model?.label ?? []].flat().map(String);
  return model && task.classes.length ? String(model.label) : null;
}

/* ---- changes ---- */

const pack = ({ marks, ...rest }) => JSON.stringify({ ...rest, marks: [...marks] });

function unpack(text) {
  const { marks, ...rest } = JSON.parse(text);
  return { ...rest, marks: new Set(marks) };
}

function change(action) {
  const before = pack(draft);
  action(draft);
  if (pack(draft) !== before) earlier.push(before);
  draw();
}

function undo() {
  if (!earlier.length) return;
  const never = draft.never;
  draft = unpack(earlier.pop());
  if (String(never) !== String(draft.never)) attempt(saveNever);
  draw();
}

function choose(name) {
  change((next) => {
    if (!task.multi) next.label = name;
    else {
      const labels = chosenLabels(next);
      next.label = labels.includes(name) ? labels.filter((other) => other !== name) : [...labels, name];
    }
    next.notEnough = false;
  });
}

function toggleLink(i, j) {
  change((next) => {
    const others = next.links.filter(([a, b]) => a !== i || b !== j);
    next.links = others.length < next.links.length ? others : [...others, [i, j]];
  });
}

function toggleNever(word) {
  change((next) => {
    const has = next.never.some((other) => other.toLowerCase() === word.toLowerCase());
    next.never = has ? next.never.filter((other) => other.toLowerCase() !== word.toLowerCase()) : [...next.never, word];
  });
  attempt(saveNever);
}

async function saveNever() {
  neverIsSaved = false;
  const words = (task.never[person] = draft.never);
  await postJson("never", { annotator: person, never: words });
  neverIsSaved = words === task.never[person];
}

function setNeverMode(on) {
  byId("never").setAttribute("aria-pressed", on);
  byId("texts").classList.toggle("never-mode", on);
  const question = task.pairs ? "Link the words that decide the label." : "Mark the words that decide the label.";
  byId("question").textContent = on ? "Choose the word that must never count." : question;
}

const inNeverMode = () => byId("never").getAttribute("aria-pressed") === "true";

/* A click, a tap or the space bar on a word. */
function use(option) {
  if (inNeverMode()) {
    setNeverMode(false);
    toggleNever(option.textContent);
  } else if (!task.pairs) {
    change(({ marks }) => marks.delete(option.k) || marks.add(option.k));
  } else if (!picked || picked.side === option.side) {
    picked = picked === option ? null : option;
    draw();
  } else {
    const [a, b] = option.side ? [picked, option] : [option, picked];
    picked = null;
    toggleLink(a.index, b.index);
  }
}

function followDrags() {
  let start = null;
  let before = "";
  let last = null;
  const restore = () => (draft = unpack(before));
  followPointer(byId("texts"), {
    start(word) {
      [start, last, before] = [word, word, pack(draft)];
    },
    over(word) {
      if (task.pairs || inNeverMode() || word === last) return;
      restore();
      last = word;
      markRange(draft.marks, start.k, word.k, !draft.marks.has(start.k));
      draw();
    },
    end(word) {
      if (word === start && last === start) use(word);
      else if (task.pairs && word && word.side !== start.side) {
        picked = start;
        use(word);
      } else if (last !== start) {
        earlier.push(before);
        draw();
      }
    },
    cancel() {
      restore();
      draw();
    },
  });
}

/* ---- the way through the texts ---- */

async function load(id) {
  show(await getJson(mine(`texts/${id}`)));
}

/* The next text that nobody else has done in the meantime. */
async function next() {
  while (queue.length) {
    const text = await getJson(mine(`texts/${queue[0]}`));
    if (text.own || text.others < task.needed) return show(text);
    queue.shift();
  }
  shown = null;
  byId("work").hidden = true;
  byId("finished").hidden = false;
  byId("reopen").hidden = !done.length;
}

async function save() {
  const needsLabel = (task.classes.length && !task.multi) || task.task === "regression";
  if (needsLabel && draft.label === null && !draft.notEnough) {
    throw new Error("Choose a label first, or say that there is not enough here.");
  }
  if (!neverIsSaved) await saveNever();
  const { id } = shown;
  const marked = task.pairs
    ? { alignment: draft.links }
    : { rationale_chars: spansOf(lists[0].options, draft.marks) };
  addTime();
  const spent = { seconds: Math.round(10 * seconds) / 10, not_enough: draft.notEnough };
  const label = draft.notEnough ? null : draft.label;
  await postJson("annotations", { id, annotator: person, label, ...marked, ...spent });
  queue = queue.filter((other) => other !== id);
  done = [...done.filter((other) => other !== id), id];
  await showProgress();
  await next();
  if (byId("agreement").open) showAgreement(); // nobody waits for it
}

async function back() {
  const k = shown ? done.indexOf(shown.id) : -1;
  const before = done[(k < 0 ? done.length : k) - 1];
  if (before) await load(before);
}

async function skip() {
  if (!queue.includes(shown.id)) return next();
  queue = [...queue.filter((id) => id !== shown.id), shown.id];
  return next();
}

/* Time passes only while the page is visible and somebody uses it. */
function addTime() {
  const now = performance.now();
  if (!document.hidden) seconds += Math.min(now - latest, IDLE) / 1000;
  latest = now;
}

async function showProgress() {
  task = await getJson("task");
  const own = task.people[person];
  const speed = own ? `, ${own.seconds.toFixed(0)} s each` : "";
  byId("title").textContent = task.name;
  byId("progress").textContent = `${person}: ${own?.texts ?? 0} of ${task.texts}${speed}`;
  byId("bar").max = task.texts;
  byId("bar").value = own?.texts ?? 0;
}

/* ---- keys ---- */

const KEYS = { n: "not-enough", x: "never", c: "clear", u: "undo", b: "back", s: "skip" };

function onKey(event) {
  addTime();
  const { key, target } = event;
  if (byId("work").hidden || target.matches("input, textarea, summary")) return;
  const list = target.closest(".words");
  const onButton = target.matches("button");
  if (event.repeat && !key.startsWith("Arrow")) return event.preventDefault(); // a key held down acts once
  if (key === "Enter" && !onButton) byId("save").click();
  else if (key === "z" && (event.ctrlKey || event.metaKey)) undo();
  else if (event.ctrlKey || event.metaKey || event.altKey) return;
  else if (key === "x" && list && !task.pairs) toggleNever(list.options[list.cursor].textContent);
  else if (key in KEYS) byId(KEYS[key]).click();
  else if (/^[1-9]$/.test(key) && task.classes[key - 1]) choose(task.classes[key - 1]);
  else if (key === "Escape") {
    picked = null;
    setNeverMode(false);
    draw();
  } else if (list && key === " ") use(list.options[list.cursor]);
  else if (list && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) {
    const from = list.cursor;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: list.options.length - 1 }[key];
    moveCursor(list, to);
    if (event.shiftKey && !task.pairs) change(({ marks }) => markRange(marks, from, list.cursor, true));
  } else return;
  event.preventDefault();
}

/* After a click on a button, the keys are those of the words again: Enter saves rather than clicks once more. */
function focusWords({ target, detail }) {
  if (shown && detail && target.closest("#work button")) lists[0].focus({ preventScroll: true });
}

/* ---- start ---- */

/* A text in the address, #text=... or #premise=...&hypothesis=..., comes first: `serve` and reports lead here. */
async function textInAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const texts = task.pairs ? [given.get("premise"), given.get("hypothesis")] : [given.get("text")];
  if (!texts.every((text) => text?.trim())) return false;
  const text = await postJson("draw", { texts, annotator: person });
  history.replaceState(null, "", location.pathname);
  show(text);
  return true;
}

async function begin(name) {
  person = name.trim();
  localStorage.setItem(NAME, person);
  byId("who").hidden = true;
  await showProgress();
  byId("agreement").hidden = false;
  ({ todo: queue, done } = await getJson(mine("queue")));
  if (!(await textInAddress())) await next();
}

function start() {
  const act = (id, action) => byId(id).addEventListener("click", () => attempt(async () => action()));
  for (const [id, action] of Object.entries({ save, back, skip, reopen: back })) byId(id).addEventListener("click", () => step(action));
  act("undo", undo);
  act("never", () => setNeverMode(!inNeverMode()));
  act("not-enough", () => change((next) => (next.notEnough = !next.notEnough)));
  act("clear", () => change((next) => Object.assign(next, { marks: new Set(), links: [] })));
  followDrags();
  document.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", addTime);
  document.addEventListener("click", focusWords);
  document.addEventListener("visibilitychange", () => (document.hidden ? addTime() : (latest = performance.now())));
  window.addEventListener("resize", () => shown && draw());
  byId("agreement").addEventListener("toggle", () => byId("agreement").open && showAgreement());
  byId("who").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => begin(byId("name").value));
  });
  const known = localStorage.getItem(NAME) ?? "";
  byId("name").value = known;
  byId("who").hidden = false;
  byId("name").focus();
  if (known && /[#&](text|premise)=/.test(location.hash)) attempt(() => begin(known));
}

start();
