"use strict";

/* Texts to click. Only their beginnings can be seen, so those that begin alike are shown from where they differ. */

const ALIKE = 24; // characters that two examples may begin with alike

function setUpExamples(examples) {
  const group = at("examples");
  group.replaceChildren(at("offered"));
  const offered = examples.map((example) => (inPairs() ? example : [example]));
  for (const values of offered) {
    const button = make("button", "", { type: "button", title: values.join("\n") });
    values.forEach((value, k) => {
      const others = offered.filter((other) => other !== values).map((other) => other[k]);
      button.append(make("span", apart(value, others), { dir: "auto" }));
    });
    button.addEventListener("click", () => {
      fields().forEach((field, k) => (field.value = values[k]));
      explain();
    });
    group.append(button);
  }
  group.hidden = !examples.length;
}

/* A text from where it begins to differ, if others begin like it: only its beginning can be seen. */
function apart(text, others) {
  const words = text.split(/(?<=\s)/);
  const alike = Math.max(0, ...others.filter((other) => other !== text).map((other) => shared(words, other)));
  const skipped = words.slice(0, alike).join("").length;
  return skipped < ALIKE || alike >= words.length ? text : `… ${words.slice(alike).join("")}`;
}

/* How many words a text begins with that another one begins with, too. */
function shared(words, other) {
  const theirs = other.split(/(?<=\s)/);
  const differs = words.findIndex((word, k) => word !== theirs[k]);
  return differs < 0 ? words.length : differs;
}
