"use strict";

/* The table of agreement: of people with each other, and of the model with them. */

const agreement = { asked: false, stale: false }; // whether the table is on its way, and whether it will be outdated

/* One request at a time: the first one for thousands of texts takes seconds. */
async function showAgreement() {
  agreement.stale = true;
  if (agreement.asked) return;
  agreement.asked = true;
  const panel = byId("agreement").lastElementChild;
  try {
    while (agreement.stale) {
      agreement.stale = false;
      panel.replaceChildren(agreementTable(await getJson("agreement"), task.pairs ? "alignment-F1" : "token-F1"));
    }
  } catch (error) {
    panel.textContent = error.message;
  }
  agreement.asked = false;
}

function agreementTable(rows, score) {
  if (!rows.length) return make("p", "No text has been annotated by two people, or by a person and a model.");
  const table = make("table");
  const line = (tag, cells) => {
    const row = make("tr");
    row.append(...cells.map((cell) => make(tag, cell)));
    table.append(row);
  };
  const number = (value) => (value === null ? "–" : value.toFixed(2));
  line("th", ["", "texts", score, "same label"]);
  for (const { people, texts, token_f1: f1, same_label: same } of rows) {
    line("td", [people.join(" and "), texts, number(f1), number(same)]);
  }
  return table;
}
