// Reads /v1/openapi.json and lays it out. Text from the document becomes text nodes only, never markup.
"use strict";

const $ = (id) => document.getElementById(id);
const METHODS = ["get", "post", "put", "patch", "delete"];
const DEPTH_MAX = 4;
let api = null;

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

// `code` in descriptions, and nothing else of Markdown.
function prose(text) {
  return String(text || "").split(/(`[^`]+`)/).map((part) =>
    part.length > 2 && part.startsWith("`") && part.endsWith("`") ? make("code", {}, part.slice(1, -1)) : part);
}

function resolve(schema) {
  let seen = 0;
  while (schema && schema.$ref && seen++ < 8) {
    const name = schema.$ref.split("/").pop();
    schema = { ...(api.components.schemas[name] || {}), "x-name": name };
  }
  if (schema && schema.allOf) {
    const parts = schema.allOf.map(resolve);
    return { ...schema, type: "object", properties: Object.assign({}, ...parts.map((part) => part.properties || {})),
      required: parts.flatMap((part) => part.required || []) };
  }
  const other = schema && (schema.oneOf || schema.anyOf || []).filter((one) => one.type !== "null");
  if (other && other.length === 1) return { ...resolve(other[0]), description: schema.description || resolve(other[0]).description };
  return schema || {};
}

function typeOf(given) {
  const schema = resolve(given);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.oneOf || schema.anyOf) return schema["x-name"] || (schema.oneOf || schema.anyOf).map(typeOf).join(" | ");
  const types = [].concat(schema.type || []).filter((type) => type !== "null");
  if (types[0] === "array") return "[" + typeOf(schema.items || {}) + "]";
  if (types[0] === "object") return schema["x-name"] || "object";
  return types.join(" | ") || "any";
}

function fields(given, depth = 0, skip = []) {
  const schema = resolve(given);
  const properties = Object.entries(schema.properties || {}).filter(([name]) => !skip.includes(name));
  if (!properties.length) return null;
  const must = new Set(schema.required || []);
  return make("dl", { class: "fields" }, properties.map(([name, property]) => {
    const inner = resolve(property);
    const items = inner.type === "array" ? resolve(inner.items || {}) : inner;
    const nested = depth < DEPTH_MAX && items.properties ? fields(items, depth + 1) : null;
    const variants = depth < DEPTH_MAX && items.oneOf && items.oneOf.length > 1 && !items.discriminator
      ? items.oneOf.map((one) => make("div", {}, make("p", { class: "quiet" }, prose(resolve(one).description)), fields(one, depth + 1))) : null;
    const inside = nested || (variants && variants.some((one) => one.querySelector("dl")) ? make("div", {}, variants) : null);
    return make("div", { class: "field" },
      make("dt", {}, make("code", {}, name), make("span", { class: "type" }, typeOf(property)),
        must.has(name) ? make("span", { class: "must" }, "required") : null),
      make("dd", {}, prose(property.description || inner.description),
        inside ? make("details", {}, make("summary", {}, "Fields"), inside) : null));
  }));
}

function example(given, depth = 0) {
  const schema = resolve(given);
  for (const own of [given, schema]) {
    if (own.example !== undefined) return own.example;
    if (own.examples && own.examples.length) return own.examples[0];
    if (own.default !== undefined) return own.default;
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (depth > 5) return null;
  if (schema.oneOf) return example(schema.oneOf[0], depth + 1);
  const type = [].concat(schema.type || [])[0];
  if (type === "array") return [example(schema.items || {}, depth + 1)];
  if (type === "object" || schema.properties) {
    const must = new Set(schema.required || []);
    const shown = Object.entries(schema.properties || {}).filter(([name, property]) => must.has(name) || property.example !== undefined);
    return Object.fromEntries(shown.map(([name, property]) => [name, example(property, depth + 1)]));
  }
  return { string: "", integer: 0, number: 0, boolean: false }[type] ?? null;
}

function colored(text) {
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b|\b(?:true|false|null)\b/g;
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(token)) {
    parts.push(text.slice(at, match.index));
    const kind = match[2] !== undefined ? "k" : match[1] ? "s" : /[tfn]/.test(match[0][0]) ? "w" : "n";
    parts.push(make("span", { class: kind }, match[1] || match[0]), match[2] || "");
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return make("pre", { tabindex: "0" }, parts);
}

const shown = (value) => colored(typeof value === "string" ? value : JSON.stringify(value, null, 2));
const anchor = (method, path) => (method + path).replace(/[^a-z0-9]+/gi, "-").replace(/-$/, "");

function address(path) {
  return path.split(/(\{[^}]+\})/).map((part) => part.startsWith("{") ? make("i", {}, part) : part);
}

function route(method, path, operation) {
  const parameters = operation.parameters || [];
  const content = operation.requestBody && operation.requestBody.content;
  const bodies = Object.entries(content || {});
  // A file is chosen, not typed.
  const [mediaType, media] = bodies.find(([type]) => type === "multipart/form-data") || bodies[0] || [];
  const places = ["path", "query", "header"];
  const inputs = parameters.filter((one) => one.in !== "cookie").sort((a, b) => places.indexOf(a.in) - places.indexOf(b.in));
  const answers = Object.entries(operation.responses || {});
  const good = answers.find(([status]) => status.startsWith("2"));
  const goodContent = good && Object.values(good[1].content || {})[0];
  const goodSchema = goodContent && goodContent.schema;
  const list = inputs.length ? make("dl", { class: "fields" }, inputs.map((one) => make("div", { class: "field" },
    make("dt", {}, make("code", {}, one.name), make("span", { class: "type" }, `${typeOf(one.schema || {})} in ${one.in}`),
      one.required ? make("span", { class: "must" }, "required") : null),
    make("dd", {}, prose(one.description))))) : null;
  const left = make("div", {},
    list && make("h4", {}, "Parameters"), list,
    media && make("h4", {}, "Body ", make("span", { class: "quiet" }, Object.keys(content).join(", "))),
    media && media.schema ? fields(media.schema) : null);
  const right = make("div", {},
    make("h4", {}, "Answers"),
    make("ul", { class: "answers" }, answers.map(([status, answer]) => make("li", {},
      make("b", { class: status.startsWith("2") ? "good" : "bad" }, status === "default" ? "other" : status),
      make("span", {}, prose(answer.description))))),
    goodSchema && fields(goodSchema) ? make("details", { class: "more" }, make("summary", {}, "Fields of the answer"), fields(goodSchema)) : null);
  // The first sentence stands in the line, the rest of the summary with the description.
  const [what, ...rest] = (operation.summary || "").split(/(?<=[.:])\s+(?=[A-Z`])/);
  const said = [...rest, (operation.description || "").trim()].filter(Boolean).join(" ");
  return make("details", { class: "route", id: anchor(method, path), "data-text": `${method} ${path} ${operation.summary} ${said}`.toLowerCase() },
    make("summary", {}, make("span", { class: `verb ${method}` }, method), make("span", { class: "address" }, address(path)),
      make("span", { class: "what" }, prose(what.replace(/[.:]$/, "")))),
    make("div", { class: "body" }, said ? make("p", { class: "said" }, prose(said)) : null, left, right),
    attempt(method, path, inputs, mediaType, media));
}

// The form that sends a request, and what came back.
function attempt(method, path, inputs, mediaType, media) {
  const values = new Map();
  const rows = inputs.map((one) => {
    const id = `${anchor(method, path)}-${one.name}`;
    const input = make("input", { id, class: "code", placeholder: one.required ? "" : "left out", required: Boolean(one.required), autocomplete: "off", spellcheck: "false" });
    values.set(one, input);
    return [make("label", { for: id }, one.name), input];
  });
  const isForm = mediaType === "multipart/form-data";
  const isJson = (mediaType || "").includes("json");
  const file = isForm ? make("input", { type: "file", "aria-label": "File", required: true }) : null;
  const text = media && !isForm ? make("textarea", { spellcheck: "false", "aria-label": "Body", class: "code" }) : null;
  if (text && isJson && media.schema) text.value = JSON.stringify(example(media.schema), null, 2);
  const stop = make("button", { type: "button", disabled: true }, "Stop");
  const send = make("button", { type: "submit", class: "primary" }, "Send");
  const back = make("div", { class: "said-back", "aria-live": "polite" });
  const form = make("form", {}, make("div", { class: "inputs" }, rows, file ? [make("span", {}), file] : null, text),
    make("div", { class: "row" }, send, stop, make("span", { class: "quiet" }, method === "get" ? "" : "This really happens.")), back);
  form.addEventListener("submit", async (submit) => {
    submit.preventDefault();
    const controller = new AbortController();
    stop.onclick = () => controller.abort();
    [send.disabled, stop.disabled] = [true, false];
    try {
      await perform(method, path, values, { text, file, mediaType }, back, controller.signal);
    } catch (error) {
      back.append(make("p", { class: "bad" }, error.name === "AbortError" ? "Stopped." : `It could not be sent: ${error.message}`));
    }
    [send.disabled, stop.disabled] = [false, true];
  });
  return make("details", { class: "try" }, make("summary", {}, "Try it"), form);
}

async function perform(method, path, values, body, back, signal) {
  let target = path;
  const query = new URLSearchParams();
  const headers = new Headers();
  const token = sessionStorage.getItem("token");
  if (token) headers.set("Authorization", `Bearer ${token}`);
  for (const [one, input] of values) {
    if (one.in === "path") target = target.replace(`{${one.name}}`, encodeURIComponent(input.value));
    else if (input.value !== "" && one.in === "query") query.append(one.name, input.value);
    else if (input.value !== "" && one.in === "header") headers.set(one.name, input.value);
  }
  const init = { method: method.toUpperCase(), headers, signal, cache: "no-store" };
  if (body.file) {
    init.body = new FormData();
    if (body.file.files[0]) init.body.append("file", body.file.files[0]);
  } else if (body.text && body.text.value.trim() !== "") {
    init.body = body.text.value;
    headers.set("Content-Type", body.mediaType);
  }
  const began = performance.now();
  back.replaceChildren(make("p", { class: "quiet" }, "Waiting …"));
  const response = await fetch(target + (query.size ? `?${query}` : ""), init);
  const line = make("div", { class: "line" }, make("b", { class: response.ok ? "good" : "bad" }, `${response.status} ${response.statusText}`),
    make("span", {}, `${Math.round(performance.now() - began)} ms`), make("span", {}, response.headers.get("content-type") || ""));
  back.replaceChildren(line);
  const type = response.headers.get("content-type") || "";
  if (type.startsWith("text/event-stream")) return stream(response, back);
  const isText = /json|text\/|xml|csv/.test(type);
  if (!isText && response.ok && response.status !== 204) return void back.append(make("p", { class: "quiet" }, `${(await response.blob()).size} bytes`));
  const text = await response.text();
  if (!text) return;
  try { back.append(shown(JSON.parse(text))); } catch { back.append(shown(text.slice(0, 200000))); }
}

// Events one below the other as they come.
async function stream(response, back) {
  const box = make("pre", { tabindex: "0" });
  back.append(box);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const below = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
    box.append(...colored(value).childNodes);
    if (below) box.scrollTop = box.scrollHeight;
  }
}

function eventCard(name, schema) {
  return make("details", { class: "route", id: `event-${name}`, "data-text": `${name} event ${schema.description}`.toLowerCase() },
    make("summary", {}, make("span", { class: "address" }, name), make("span", { class: "what" }, prose(schema.description))),
    make("div", { class: "body" }, make("div", {}, make("h4", {}, "Fields"),
      fields(schema, 0, ["type", "turn_id", "seq", "timestamp", "step", "block", "tool_id"]) || make("p", { class: "quiet" }, "None of its own."))));
}

function lay() {
  const groups = new Map((api.tags || []).map((tag) => [tag.name, { tag, routes: [] }]));
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((method) => item[method])) {
      const name = (item[method].tags || ["other"])[0];
      if (!groups.has(name)) groups.set(name, { tag: { name, description: "" }, routes: [] });
      groups.get(name).routes.push([method, path, item[method]]);
    }
  }
  const main = [make("section", { id: "top" }, make("h1", {}, `${api.info.title} ${api.info.version}`),
    make("p", { class: "lead" }, prose(api.info.description)),
    make("p", { class: "quiet" }, "The same for programs: ", make("a", { href: "/v1/openapi.json" }, "/v1/openapi.json"), " (OpenAPI 3.1). Keys: ",
      make("kbd", {}, "/"), " searches, ", make("kbd", {}, "j"), " and ", make("kbd", {}, "k"), " go from route to route, ", make("kbd", {}, "Enter"), " opens one."))];
  const side = [];
  for (const { tag, routes } of groups.values()) {
    if (!routes.length) continue;
    main.push(make("section", { class: "group" }, make("h2", {}, tag.name), make("p", {}, prose(tag.description)), routes.map((one) => route(...one))));
    side.push(make("h2", {}, tag.name), make("ul", {}, routes.map(([method, path, operation]) => make("li", {},
      make("a", { href: `#${anchor(method, path)}` }, make("span", { class: `verb ${method}` }, method === "delete" ? "del" : method),
        make("span", {}, prose((operation.summary || path).replace(/[.:,].*$/s, ""))))))));
  }
  const schemas = api.components.schemas;
  const events = Object.keys(schemas.Event && schemas.Event.discriminator ? schemas.Event.discriminator.mapping : {});
  if (events.length) {
    const schema = (name) => schemas[schemas.Event.discriminator.mapping[name].split("/").pop()];
    const every = make("details", { class: "more" }, make("summary", {}, "What every event has"),
      fields({ ...schema("block_end"), properties: schema("block_end").properties }, 0));
    main.push(make("section", { class: "group events", id: "events" }, make("h2", {}, "Event types"),
      make("p", {}, "One JSON object each, the same over SSE and WebSocket. Ignore types and fields that you do not know."), every,
      events.map((name) => eventCard(name, schema(name)))));
    side.push(make("h2", {}, "Event types"), make("ul", {}, events.map((name) => make("li", {}, make("a", { class: "event", href: `#event-${name}` }, name)))));
  }
  $("content").replaceChildren(...main);
  $("routes").replaceChildren(...side, make("p", { class: "nothing", hidden: true }, "Nothing is called so."));
}

function search() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const card of document.querySelectorAll(".route")) {
    const fits = words.every((word) => card.dataset.text.includes(word));
    card.hidden = !fits;
    found += fits ? 1 : 0;
    const link = document.querySelector(`nav a[href="#${CSS.escape(card.id)}"]`);
    if (link) link.parentElement.hidden = !fits;
  }
  for (const group of document.querySelectorAll(".group")) group.hidden = words.length > 0 && !group.querySelector(".route:not([hidden])");
  for (const heading of document.querySelectorAll("nav h2")) heading.hidden = !heading.nextElementSibling.querySelector("li:not([hidden])");
  document.querySelector(".nothing").hidden = found > 0;
  $("top").hidden = words.length > 0;
}

function go(step) {
  const cards = [...document.querySelectorAll(".route:not([hidden]) > summary")];
  const now = cards.indexOf(document.activeElement);
  const next = cards[Math.min(Math.max(now + step, 0), cards.length - 1)];
  if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
}

function openTarget() {
  const id = decodeURIComponent(location.hash.slice(1));
  // `#token=…` is what `serve` prints: it is taken in and goes from the address at once.
  if (id.startsWith("token=")) {
    sessionStorage.setItem("token", id.slice(6));
    history.replaceState(null, "", location.pathname);
    return keyState();
  }
  const card = id && $(id);
  if (!card) return;
  if (card.matches("details")) card.open = true;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${id}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  $("routes").classList.remove("open");
  card.scrollIntoView();
}

function keyState() {
  const has = Boolean(sessionStorage.getItem("token"));
  $("key-state").classList.toggle("on", has);
  $("key-label").textContent = has ? "Key in use" : "Key";
}

function theme(next) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = next || localStorage.getItem("theme") || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now;
  if (next) localStorage.setItem("theme", next);
}

theme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme());
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
$("search").addEventListener("input", search);
$("menu").addEventListener("click", () => $("menu").setAttribute("aria-expanded", String($("routes").classList.toggle("open"))));
$("key-form").addEventListener("submit", (submit) => {
  submit.preventDefault();
  if ($("token").value) sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  $("key").open = false;
  keyState();
});
$("forget").addEventListener("click", () => { sessionStorage.removeItem("token"); $("key").open = false; keyState(); });
addEventListener("hashchange", openTarget);
addEventListener("keydown", (pressed) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
  if (pressed.key === "Escape") { $("search").value = ""; search(); document.activeElement.blur(); $("key").open = false; return; }
  if (typing || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return;
  if (pressed.key === "/") { pressed.preventDefault(); $("search").focus(); }
  if (pressed.key === "j") go(1);
  if (pressed.key === "k") go(-1);
});
keyState();
fetch("/v1/openapi.json").then((response) => response.ok ? response.json() : Promise.reject(new Error(String(response.status)))).then((document_) => {
  api = document_;
  lay();
  openTarget();
}).catch((error) => $("content").replaceChildren(make("p", { class: "loading bad" }, `The document could not be read: ${error.message}`)));
