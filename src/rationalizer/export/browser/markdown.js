/* Model cards: the part of Markdown that they use. Strings never become markup. */

import { make } from "./drawing.js";

/* Elements for a card; its title, code and pictures are left out. */
export function renderCard(card) {
  const text = card
    .replace(/^---\n[^]*?\n---\n/, "")
    .replace(/<!--[^]*?-->/g, "")
    .replace(/^## Example\n[^]*?(?=^## |$(?![^]))/m, "")
    .replace(/^```[^]*?^```$/gm, "");
  const blocks = text.split(/\n\s*\n/).map((block) => block.trim()).filter((block) => block && !/^(?:# |!\[)/.test(block));
  return blocks.map((block) => {
    const lines = block.split("\n");
    const heading = /^#+ +(.*)$/.exec(block);
    if (heading) return make("h3", inline(heading[1]));
    if (lines.every((line) => line.startsWith("|"))) return make("div", table(lines), { class: "scroll", tabindex: "0" });
    if (lines.every((line) => /^(?:[-*] |\s)/.test(line))) return make("ul", block.split(/\n?^[-*] /m).filter(Boolean).map((item) => make("li", inline(item))));
    return make("p", inline(block));
  });
}

function table([head, , ...lines]) {
  const row = (line, tag) => make("tr", line.replace(/^\||\|$/g, "").split("|").map((cell) => make(tag, inline(cell.trim()))));
  return make("table", [make("thead", row(head, "th")), make("tbody", lines.map((line) => row(line, "td")))]);
}

function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)\s]+\))/).map((part) => {
    const link = /^\[([^\]]+)\]\((https?:[^)\s]+)\)$/.exec(part);
    if (link) return make("a", link[1], { href: link[2], rel: "noopener" });
    if (/^`.+`$/.test(part)) return make("code", part.slice(1, -1));
    return /^\*\*.+\*\*$/.test(part) ? make("strong", part.slice(2, -2)) : part;
  });
}
