"use strict";

/* Shows openapi.json; loads nothing from other servers. */

function make(tag, text = "", attributes = {}, ...children) {
  const element = document.createElement(tag);
  element.textContent = text.replaceAll("`", "");
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.anyOf) return schema.anyOf.filter((one) => one.type !== "null").map(typeOf).join(" or ");
  if (schema.prefixItems) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  return schema.type ?? "anything";
}

function table(properties) {
  const rows = Object.entries(properties).map(([name, schema]) =>
    make("tr", "", {}, make("td", "", {}, make("code", name)), make("td", typeOf(schema)), make("td", schema.description ?? "")),
  );
  return make("table", "", {}, make("tbody", "", {}, ...rows));
}

function curl(verb, path, example) {
  const address = new URL(path.slice(1).replace("{kind}", "html"), document.baseURI);
  const token = sessionStorage.getItem(TOKEN) ? ' \\\n  -H "Authorization: Bearer $RATIONALIZER_TOKEN"' : "";
  if (verb === "get") return `curl ${address}${token}`;
  const body = JSON.stringify(example).replaceAll("'", "'\\''");
  return `curl ${address}${token} \\\n  -H 'Content-Type: application/json' \\\n  -d '${body}'`;
}

function operation(described, path, verb, details) {
  const schema = described.components.schemas;
  const asked = details.requestBody && schema[typeOf(details.requestBody.content["application/json"].schema)];
  const parts = [
    make("h2", "", {}, make("span", verb.toUpperCase(), { class: "verb" }), make("span", path, { class: "path" })),
    make("p", details.summary, { class: "summary" }),
  ];
  if (details.parameters) parts.push(table(Object.fromEntries(details.parameters.map((one) => [one.name, one.schema]))));
  if (asked) parts.push(make("h3", `Request: ${asked.description}`), table(asked.properties));
  for (const example of asked?.examples ?? [null]) parts.push(make("pre", curl(verb, path, example)));
  const answers = Object.entries(details.responses).map(([status, { description }]) =>
    make("tr", "", {}, make("td", "", {}, make("code", status)), make("td", description)),
  );
  parts.push(make("h3", "Answers"), make("table", "", {}, make("tbody", "", {}, ...answers)));
  return make("article", "", { class: "card" }, ...parts);
}

async function draw() {
  const described = await (await request("openapi.json")).json();
  const operations = Object.entries(described.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, details]) => operation(described, path, verb, details)),
  );
  document.getElementById("operations").append(...operations);
  // A plain link would be requested without the token.
  const file = new Blob([JSON.stringify(described, null, 1)], { type: "application/json" });
  document.getElementById("described").href = URL.createObjectURL(file);
}

draw().catch((error) => document.getElementById("operations").append(make("p", error.message, { role: "alert" })));
