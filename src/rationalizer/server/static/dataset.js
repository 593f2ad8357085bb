"use strict";

/* The models on a whole dataset, where the server has been given one. */

/* What is to be seen of a model is asked for when it is opened. */
function setUpDataset(name) {
  const seen = state.models.filter((candidate) => candidate.view);
  at("dataset").hidden = !seen.length;
  at("dataset-name").textContent = `What is selected in all of ${name}`;
  for (const { name: title } of seen) {
    const part = make("details");
    part.append(make("summary", title), make("div"));
    part.addEventListener("toggle", () => part.open && fill(part, `views/${encodeURIComponent(title)}`));
    at("dataset").append(part);
  }
}

async function fill(part, path) {
  const place = part.lastElementChild;
  if (place.shadowRoot) return;
  try {
    const html = await (await ask(path)).text();
    if (!place.shadowRoot) place.attachShadow({ mode: "open" }).innerHTML = html; // drawn by the server, which escapes texts
  } catch (error) {
    part.open = false;
    showProblem(inWords(error));
  }
}
