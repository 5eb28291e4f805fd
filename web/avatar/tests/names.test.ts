import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Names, PUPPET } from "../src/index.ts";

const read = (path: string): string =>
  readFileSync(new URL(`../../../crates/${path}`, import.meta.url), "utf8");
const TOOLS = read("tools/src/builtin/live2d.rs");
const DEMO = read("testkit/src/demo/reply/avatar.rs");

/** Names in a text: `smile, sad` of "… for example smile, sad." */
function examplesOf(what: string): string[] {
  const found = new RegExp(`/// ${what}, for example ([^.]+)\\.`).exec(TOOLS)?.[1];
  return found?.split(",").map((name) => name.trim()) ?? [];
}

test("puppet has every name that the server's tools mention", () => {
  const [expressions, groups] = [examplesOf("Name of the expression"), examplesOf("Group of motions")];
  expect(expressions.length).toBeGreaterThan(3);
  expect(groups.length).toBeGreaterThan(2);
  for (const name of expressions) expect(PUPPET.expressions).toContain(name);
  for (const name of groups) expect(Object.keys(PUPPET.motions)).toContain(name);
});

test("puppet has every name that the demo model uses", () => {
  const rows = [...DEMO.matchAll(/\], (true|false), "(\w+)",/g)];
  expect(rows.length).toBeGreaterThan(5);
  for (const [, isMotion, name] of rows) {
    expect(isMotion === "true" ? Object.keys(PUPPET.motions) : PUPPET.expressions).toContain(name);
  }
});

test.each([
  ["happy", "smile"],
  ["Joy", "laugh"],
  ["SAD", "sad"],
  ["embarrassed", "shy"],
  ["生气", "angry"],
  ["F05", undefined],
])("request for %s shows %s", (requested, shown) => {
  expect(Names.ofExpressions(PUPPET).find(requested)).toBe(shown);
});

test.each([
  ["tap_body", "TapBody"],
  ["Tap Body", "TapBody"],
  ["hello", "Wave"],
  ["点头", "Nod"],
  ["Fly", undefined],
])("request for %s plays %s", (requested, done) => {
  expect(Names.ofMotions(PUPPET).find(requested)).toBe(done);
});

test("own name wins over a synonym of another one", () => {
  expect(new Names(["smile", "happy"]).find("happy")).toBe("happy");
});
