"use strict";

/* The models on a whole dataset, if the server has one. */

/* The view of a model is loaded when it is opened. */
function setUpDataset(name) {
  const viewed = state.models.filter((candidate) => candidate.view);
  byId("dataset").hidden = !viewed.length;
  byId("dataset-name").textContent = `Rationales in ${name}`;
  for (const { name: title } of viewed) {
    const part = make("details");
    part.append(make("summary", title), make("div"));
    part.addEventListener("toggle", () => part.open && fill(part, `views/${encodeURIComponent(title)}`));
    byId("dataset").append(part);
  }
}

async function fill(part, path) {
  const container = part.lastElementChild;
  if (container.shadowRoot) return;
  try {
    const html = await (await request(path)).text();
    if (!container.shadowRoot) container.attachShadow({ mode: "open" }).innerHTML = html; // drawn by the server, which escapes texts
  } catch (error) {
    part.open = false;
    showProblem(describeError(error));
  }
}
