// The cells of one client of the matrix, for Node.js: as `cells.py`, which says what they are.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export const BASE_URL = process.env.BASE_URL;
export const OPENAI_URL = `${BASE_URL}/v1`;
export const KEY = process.env.KEY;
export const WRONG_KEY = "tl_nobody";
export const MODEL = "default";

const TABLE = JSON.parse(readFileSync(new URL("cells.json", import.meta.url), "utf8"));
export const ASKED = Object.fromEntries(Object.entries(TABLE).map(([name, row]) => [name, row.asked]));
export const PERSON = TABLE.structured.answer;
const DETAIL_CHARS_MAX = 600;

/** Where the packages are: not beside this file. */
const require = createRequire(`${process.env.PACKAGES}/`);

export function load(name) {
  return import(pathToFileURL(require.resolve(name)));
}

export function versionOf(name) {
  return JSON.parse(readFileSync(`${process.env.PACKAGES}/node_modules/${name}/package.json`, "utf8")).version;
}

/** The client's tool, which notes where it was asked for. */
export function weather() {
  const cities = [];
  const run = async ({ city }) => {
    cities.push(city);
    return `${city}: sunny`;
  };
  return { cities, run };
}

export function expectWeatherOf(cities, seen) {
  assert.deepEqual([...seen].sort(), [...cities].sort(), "each city was asked for once");
}

/** The error that this ends in. */
export async function rejects(action) {
  let seen;
  try {
    seen = await action();
  } catch (error) {
    return error;
  }
  assert.fail(`no error, but ${JSON.stringify(seen)}`);
}

/** How many turns the server runs; those that wait for this client's next request are not among them. */
async function runningTurns() {
  const response = await fetch(`${OPENAI_URL}/turns`, { headers: { Authorization: `Bearer ${KEY}` } });
  return (await response.json()).items.filter((turn) => turn.waits_for === undefined).length;
}

/** Asked again until it holds: the runner bounds the whole. */
async function untilIdle() {
  while ((await runningTurns()) > 0);
}

/** A question that the client leaves while it is answered: the server's turn ends, too. */
export async function cancelled(leave) {
  await untilIdle();
  await leave(async () => assert.equal(await runningTurns(), 1, "the turn does not run"));
  await untilIdle();
}

/** Runs the cells that are named on the command line, or all. */
export async function run(client, version, cells) {
  say({ client, version });
  const named = process.argv.slice(2);
  for (const cell of named.length > 0 ? named : Object.keys(cells)) {
    say({ client, cell, ok: null });
    say({ client, cell, ...(await attempt(cell, cells[cell])) });
  }
  // Connections that a library keeps are no reason to stay.
  process.exit(0);
}

async function attempt(cell, action) {
  try {
    const seen = await action();
    if (seen !== undefined) assert.deepEqual(seen, TABLE[cell].answer);
    return { ok: true, detail: "" };
  } catch (error) {
    const line = /([\w-]+\.mjs:\d+)/.exec(error.stack ?? "")?.[1] ?? "elsewhere";
    return { ok: false, detail: `${error.name}: ${error.message} (${line})`.slice(0, DETAIL_CHARS_MAX) };
  }
}

function say(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
