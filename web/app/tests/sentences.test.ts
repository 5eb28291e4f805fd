// All texts of the server's sources and of recorded turns are translated to Chinese.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Block, Message } from "@throughline/client";
import { describe, expect, test } from "vitest";
import { en } from "../src/i18n/en.ts";
import { zh } from "../src/i18n/zh.ts";
import { CODES, OUTCOMES, REMEDIES, SENTENCES, WHOLE } from "../src/i18n/zh-server.ts";

const crates = join(import.meta.dirname, "../../../crates");

function source(path: string): string {
  return readFileSync(join(crates, path), "utf8");
}

/** All Rust files below a folder, by path. */
function sources(folder: string): [string, string][] {
  const files = readdirSync(join(crates, folder), { recursive: true, encoding: "utf8" });
  const rust = files.filter((file) => file.endsWith(".rs"));
  return rust.map((file): [string, string] => [file, source(`${folder}/${file}`)]);
}

/** The part of a file between two lines. */
function between(text: string, from: string, to: string): string {
  const [begin, end] = [text.indexOf(from), text.indexOf(to, text.indexOf(from))];
  expect(begin, from).toBeGreaterThan(-1);
  expect(end, to).toBeGreaterThan(begin);
  return text.slice(begin, end);
}

/** All string literals. */
function strings(rust: string): string[] {
  return [...rust.matchAll(/"(?:[^"\\]|\\.)*"/g)].map(([literal]): string => JSON.parse(literal));
}

const isSentence = (text: string): boolean => /^[A-Z].*\.$/.test(text);
const isCode = (text: string): boolean => /^[a-z]+(_[a-z]+)*$/.test(text);
const isChinese = (text: string): boolean => /^\p{Script=Han}/u.test(text.replace(/^[`/\w]+\s/, ""));
/** True for sentences without values; others are shown below the translation of their code. */
const isWhole = (text: string): boolean => !text.includes("{");

describe("texts of the engine", () => {
  const wording = source("engine/src/wording.rs");
  const failures = between(wording, "// --- failures ---", "// --- notices ---");
  const notices = between(wording, "// --- notices ---", "// --- questions ---");
  const findings = between(
    source("wire/src/text_calls/protocol.rs"),
    "fn sentence(self)",
    "/// Bytes of a refused block",
  );

  test.each(strings(failures).filter(isCode))("error code %s is known", (code) => {
    // Placeholder for a reason that an upstream has not given.
    if (code !== "unknown") expect(CODES).toHaveProperty(code);
  });

  test.each([...strings(failures), ...strings(notices), ...strings(findings)].filter(isSentence))(
    "%s",
    (sentence) => {
      if (isWhole(sentence)) expect(WHOLE.has(sentence) || sentence in SENTENCES).toBe(true);
    },
  );
});

describe("texts of recorded turns", () => {
  const folder = join(import.meta.dirname, "../../client/specs/vectors");
  const blocks = readdirSync(folder).flatMap((file): [string, Block][] => {
    const { message }: { message: Message } = JSON.parse(readFileSync(join(folder, file), "utf8"));
    return message.blocks.map((block) => [file, block]);
  });

  test.each(blocks)("%s", (_, block) => {
    if (block.kind === "notice") expect(zh.serverText(block.text, block.code)).toSatisfy(isChinese);
    if (block.kind === "error") {
      expect(zh.serverText(block.what, block.code)).toSatisfy(isChinese);
      expect(zh.serverText(block.remedy)).toSatisfy(isChinese);
    }
    if (block.kind === "tool_call" && block.error) expect(zh.outcomeText(block.error)).toSatisfy(isChinese);
  });

  test("recorded turns have faults, notices and failed calls", () => {
    const kinds = blocks.map(([, block]) =>
      block.kind === "tool_call" && block.error ? "failed" : block.kind,
    );
    expect(kinds).toEqual(expect.arrayContaining(["error", "notice", "failed"]));
  });
});

describe("errors of the API", () => {
  /** Modules that the page never uses: OpenAI clients, WebSockets, conversations as files. */
  const ELSEWHERE = /^(openai|projections|export|api\/ws|api\/conversations\/transfer)/;
  /** Errors of API clients, which users of the page never see. */
  const OF_PROGRAMS = new Set([
    "bad_form",
    "call_ended",
    "client_id_reserved",
    "content_type",
    "contradiction",
    "expired",
    "idempotency_key_reused",
    "invalid_json",
    "invalid_position",
    "invalid_tool",
    "invalid_tools",
    "missing_field",
    "no_file",
    "no_rule",
    "no_scope",
    "no_such_method",
    "no_such_route",
    "not_json",
    "one_file_each",
    "several_keys",
    "ticket",
    "tickets_open",
    "too_many_tools",
    "tool_name_taken",
    "unknown_field",
    "unknown_command",
    "unknown_value",
  ]);
  /** Errors for which the dialog of models has its own texts. */
  const OF_THE_DIALOG = new Set(["wrong_key", "no_such_model", "no_quota"]);
  const codes = sources("server/src")
    .filter(([file]) => !ELSEWHERE.test(file))
    .flatMap(([, rust]) => [
      ...rust.matchAll(
        /(?:ApiError|Self)::(?:new\(\s*StatusCode::\w+|bad_request\(|forbidden\(|conflict\(|gone\(|unprocessable\(|unavailable\(|too_many\(),?\s*"([a-z_]+)"/g,
      ),
      ...rust.matchAll(/bad\(\s*StatusCode::\w+,\s*"([a-z_]+)"/g),
    ])
    .map(([, code = ""]) => code);

  test.each([...new Set(codes)].sort())("%s", (code) => {
    expect(code in CODES || OF_PROGRAMS.has(code) || OF_THE_DIALOG.has(code)).toBe(true);
  });

  test("every excluded code exists", () => {
    const rust = sources("server/src").map(([, text]) => text);
    for (const code of OF_PROGRAMS)
      expect(
        rust.some((text) => text.includes(`"${code}"`)),
        code,
      ).toBe(true);
  });
});

test("every translated sentence occurs in the server", () => {
  const rust = ["engine", "wire", "tools", "throughline", "server"]
    .flatMap((crate) => sources(`${crate}/src`))
    .map(([, text]) => text)
    .join("\n");
  const unused = [...WHOLE, ...Object.keys(SENTENCES)].filter((one) => !rust.includes(JSON.stringify(one)));
  expect(unused).toEqual([]);
});

test("every translation is Chinese", () => {
  for (const text of [...Object.values(CODES), ...Object.values(SENTENCES), ...Object.values(REMEDIES)])
    expect(text).toMatch(/\p{Script=Han}/u);
  expect(Object.keys(REMEDIES).filter((code) => !(code in CODES))).toEqual([]);
  expect(Object.keys(SENTENCES).filter((sentence) => WHOLE.has(sentence))).toEqual([]);
});

test("sentences with values are shown below the text of their code", () => {
  expect(zh.serverText("there is no tool `x`", "not_found")).toBe("没有找到。\nthere is no tool `x`");
  expect(zh.serverText("the turn has ended", "turn_is_over")).toBe("这一轮已经结束。");
  expect(zh.serverText("HTTP 500: overloaded")).toBe("HTTP 500: overloaded");
  expect(zh.serverText("It is new.", "of_a_later_release")).toBe("It is new.");
  expect(zh.serverText("constructor", "constructor")).toBe("constructor");
  expect(zh.remedyText("did you mean `x`?", "not_found")).toBe("did you mean `x`?");
  expect(zh.remedyText(undefined, "turns_per_minute_max", 12)).toBe("请在 12 秒后再试。");
  expect(zh.outcomeText({ code: "timed_out", limit_ms: 30_000 })).toContain("30 秒");
  expect(zh.outcomeText({ code: "limit", limit: "iterations_max" })).toContain("工具调用轮数");
  expect(zh.outcomeText({ code: "limit", limit: "new_max" })).toContain("new_max");
  expect(Object.keys(OUTCOMES)).toContain("unknown");
});

test("English shows the server's own texts", () => {
  expect(en.serverText("The model's reply ended early.", "upstream_lost")).toBe(
    "The model's reply ended early.",
  );
  expect(en.remedyText("Try again.", "upstream_lost")).toBe("Try again.");
  expect(en.outcomeText({ code: "failed" })).toBe("failed");
});
