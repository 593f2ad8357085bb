"use strict";

/* Requests to the server, with the token if it needs one. */

const TOKEN = "rationalizer token"; // key in sessionStorage, which ends with the tab

/* Read the token from the address, #token=..., which browsers do not send, and remove it from there. */
(function readTokenFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!/^[!-~]+$/.test(token ?? "")) return;
  sessionStorage.setItem(TOKEN, token);
  history.replaceState(null, "", location.pathname + location.search);
})();

async function request(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
    const response = await fetch(path, { ...options, headers });
    if (response.ok) return response;
    const { error } = await response.json().catch(() => ({}));
    if (response.status !== 401) {
      const problem = error ? `${error.problem}; ${error.remedy.replace(/[^.?!]$/, "$&.")}` : `The server answered ${response.status}.`;
      throw Object.assign(new Error(problem), { status: response.status, field: error?.field ?? "" });
    }
    // Another request may have stored the right token in the meantime.
    if (token === sessionStorage.getItem(TOKEN)) await promptForToken(token ? "The token is wrong." : "");
  }
}

const getJson = async (path) => (await request(path)).json();

async function postJson(path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

let prompt = null; // one form for all waiting requests

function promptForToken(problem) {
  prompt ??= new Promise((resolve) => {
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
      prompt = null;
      resolve();
    };
  });
  return prompt;
}
