"use strict";

/* Asks the server, with the token where it wants one. */

const TOKEN = "rationalizer token"; // its key in sessionStorage: it is forgotten with the tab

/* From the end of the address, #token=..., which browsers do not send; and not left there for others to read. */
(function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!/^[!-~]+$/.test(given ?? "")) return;
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname + location.search);
})();

async function ask(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
    const response = await fetch(path, { ...options, headers });
    if (response.ok) return response;
    const { error } = await response.json().catch(() => ({}));
    if (response.status !== 401) {
      const problem = error ? `${error.problem}; ${error.remedy}.` : `The server answered ${response.status}.`;
      throw Object.assign(new Error(problem), { status: response.status });
    }
    // Another request may have brought the right one meanwhile.
    if (token === sessionStorage.getItem(TOKEN)) await askForToken(token ? "That is not the token." : "");
  }
}

let asking = null; // one form, however many requests wait for it

function askForToken(problem) {
  asking ??= new Promise((resolve) => {
    const form = document.getElementById("token");
    const field = form.querySelector("input");
    form.querySelector("[role=alert]").textContent = problem;
    form.hidden = false;
    field.focus();
    form.onsubmit = (event) => {
      event.preventDefault();
      sessionStorage.setItem(TOKEN, field.value.trim());
      field.value = "";
      form.hidden = true;
      asking = null;
      resolve();
    };
  });
  return asking;
}
