"use strict";

/* Explanations as files, and the link to the page on which they are corrected. */

const PIXELS = 2; // of a PNG for each unit of the drawing: sharp on slides

function downloads(body, answer) {
  const row = make("div", "Download ", { class: "downloads" });
  const drawing = async (kind) => (await post(`render/${kind}`, body)).blob();
  const files = {
    HTML: () => drawing("html"),
    SVG: () => drawing("svg"),
    PNG: async () => toPng(await (await drawing("svg")).text()),
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
  if (state.corrections === showsPairs()) row.append(correctionLink());
  return row;
}

/* Draw an SVG on white; the browser does it, so that the server needs no fonts. */
async function toPng(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = make("canvas");
  [canvas.width, canvas.height] = [PIXELS * image.naturalWidth, PIXELS * image.naturalHeight];
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/* A link to the annotation page with these texts; as its opener, this tab also hands on its token. */
function correctionLink() {
  const href = `annotate/#${new URLSearchParams(texts())}`;
  return make("a", "Correct this", { href, target: "_blank", rel: "opener" });
}

async function save(load, name) {
  try {
    const address = URL.createObjectURL(await load());
    make("a", "", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  } catch (error) {
    showProblem(describeError(error));
  }
}
