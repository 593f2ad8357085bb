/* The models, in a worker: the page stays responsive while they compute. Messages are {id, call, ...} and {id, ...}. */

import { BudgetError } from "./budget.js";
import { Conflict } from "./constraints.js";
import { loadModel, TextError } from "./models.js";
import { PatternError } from "./patterns.js";

const USER_ERRORS = [BudgetError, Conflict, PatternError, TextError];
const models = new Map(); // name -> promise of a model
const answered = new Map(); // address -> promise of a file, as models share files

/* Fetch a file; its hash is checked by the browser. A copy in the browser's cache may be the damaged one. */
async function fetchFile({ url, integrity, bytes }, onBytes) {
  const problem = `The file ${url} cannot be loaded`;
  const answer = fetch(url, { integrity }).catch(() => fetch(url, { integrity, cache: "reload" }));
  const response = await answer.catch(() => {
    throw new Error(`${problem}: it is missing or damaged, or the server does not answer. Export the page again, or start its server.`);
  });
  if (!response.ok) throw new Error(`${problem} (${response.status}). Export the page again.`);
  const buffer = await response.arrayBuffer();
  onBytes(bytes);
  return buffer;
}

function filesOf({ files }, report) {
  const total = Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0);
  let loaded = 0;
  const onBytes = (bytes) => report((loaded += bytes), total);
  const buffer = (name) => {
    const file = files[name];
    if (!answered.has(file.url)) {
      const answer = fetchFile(file, onBytes);
      answered.set(file.url, answer);
      answer.catch(() => answered.delete(file.url));
    } else onBytes(file.bytes);
    return answered.get(file.url);
  };
  return { buffer, json: async (name) => JSON.parse(new TextDecoder().decode(await buffer(name))) };
}

function load({ facts, shared }, report) {
  if (!models.has(facts.name)) {
    const loading = loadModel(facts, shared, filesOf(facts, report));
    models.set(facts.name, loading);
    loading.catch(() => models.delete(facts.name));
  }
  return models.get(facts.name);
}

const calls = {
  load: async (message, report) => void (await load(message, report)),
  explain: async ({ name, request }) => (await models.get(name)).explain(request),
};

addEventListener("message", async ({ data: { id, call, ...message } }) => {
  try {
    const answer = await calls[call](message, (loaded, total) => postMessage({ id, loaded, total }));
    postMessage({ id, answer });
  } catch (error) {
    postMessage({ id, problem: error.message, isUserError: USER_ERRORS.some((kind) => error instanceof kind) });
  }
});
