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
    button.dataset.values = JSON.stringify(values);
    button.addEventListener("click", () => {
      setTexts(values);
      explain();
      byId("answer").scrollIntoView({ block: "nearest" }); // on a small screen it may be out of sight
    });
    group.append(button);
  }
  group.hidden = !examples.length;
  if (offered.length && fields().every((field) => !field.value)) setTexts(offered[0]);
  markExample();
}

function setTexts(values) {
  fields().forEach((field, k) => (field.value = values[k]));
}

/* The example that the fields hold is marked as chosen, until its text is changed. */
function markExample() {
  const held = JSON.stringify(fields().map(({ value }) => value));
  for (const button of byId("examples").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", button.dataset.values === held);
  }
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
