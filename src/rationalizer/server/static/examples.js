"use strict";

/* Example texts. Only their beginnings are visible, so texts with the same beginning are shown from where they differ. */

const MIN_SHARED = 24; // characters that two examples may have in common at the start

function setUpExamples(examples) {
  const group = byId("examples");
  group.replaceChildren(byId("offered"));
  const offered = examples.map((example) => (showsPairs() ? example : [example]));
  for (const values of offered) {
    const button = make("button", "", { type: "button", title: values.join("\n") });
    values.forEach((value, k) => {
      const others = offered.filter((other) => other !== values).map((other) => other[k]);
      button.append(make("span", distinctPart(value, others), { dir: "auto" }));
    });
    button.addEventListener("click", () => {
      fields().forEach((field, k) => (field.value = values[k]));
      explain();
    });
    group.append(button);
  }
  group.hidden = !examples.length;
}

/* Return the text from where it differs from others that begin the same way. */
function distinctPart(text, others) {
  const words = text.split(/(?<=\s)/);
  const common = Math.max(0, ...others.filter((other) => other !== text).map((other) => sharedWords(words, other)));
  const skipped = words.slice(0, common).join("").length;
  return skipped < MIN_SHARED || common >= words.length ? text : `… ${words.slice(common).join("")}`;
}

/* Count the leading words that two texts have in common. */
function sharedWords(words, other) {
  const theirs = other.split(/(?<=\s)/);
  const differs = words.findIndex((word, k) => word !== theirs[k]);
  return differs < 0 ? words.length : differs;
}
