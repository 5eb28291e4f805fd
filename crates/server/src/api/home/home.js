// The first page: this server's own address in place of an example's, and the key that `serve` put behind `#`.
"use strict";
const $ = (id) => document.getElementById(id);

// It goes from the address at once: addresses are kept and shared. The page of the API looks for it in the same place.
if (location.hash.startsWith("#token=")) {
  sessionStorage.setItem("token", location.hash.slice("#token=".length));
  history.replaceState(null, "", location.pathname);
}
// What `serve` prints is no key, but is good for one, once.
if (location.hash.startsWith("#sign-in=")) {
  const ticket = location.hash.slice("#sign-in=".length);
  history.replaceState(null, "", location.pathname);
  signIn(ticket);
}
const token = sessionStorage.getItem("token");
$("has-key").hidden = !token;
$("no-key").hidden = Boolean(token);

async function signIn(ticket) {
  const headers = { "content-type": "application/json" };
  const response = await fetch("/v1/sign-in", { method: "POST", headers, body: JSON.stringify({ ticket }) });
  if (!response.ok) return;
  sessionStorage.setItem("token", (await response.json()).key);
  location.reload();
}

// At the address of the page stands this one only where there is none.
$("no-page").hidden = location.pathname !== "/";

const base = location.origin + $("base").dataset.path;
$("base").textContent = base;
const body = JSON.stringify({ model: "default", messages: [{ role: "user", content: $("curl").dataset.input }] });
const command = (key) => `curl ${base}/chat/completions \\
  -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" \\
  -d '${body}'`;
// The key itself is copied and never shown.
$("curl").textContent = command("$KEY");
const texts = { base, curl: command(token || "$KEY") };

async function copy(button, text) {
  const before = button.textContent;
  await navigator.clipboard.writeText(text);
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = before; }, 1500);
}
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", () => copy(button, texts[button.dataset.copy]));
}
$("copy-key").addEventListener("click", (event) => copy(event.target, token));
// Copying needs HTTPS or this machine; elsewhere the text can be selected.
if (!navigator.clipboard) for (const button of document.querySelectorAll("button")) button.hidden = true;
