import type { ParsedReply, ParsedRequest } from "@throughline/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { argumentsOf, type Draft, objectDraft } from "../src/shared/schema-form/draft.ts";
import { exampleReply } from "../src/shared/schema-form/example.ts";
import { formOf } from "../src/shared/schema-form/schema.ts";
import { testerAddress } from "../src/shared/tester-address.ts";
import { testerLocationOf } from "../src/tester/model/location.ts";
import { afterPiece, offsetsIn, passagesOf } from "../src/tester/model/passages.ts";
import { asReply } from "../src/tester/outlook.ts";

/** Kinds of the fields of a form, with `!` for required ones. */
function kinds(schema: unknown): Record<string, string> {
  return Object.fromEntries(
    formOf(schema).fields.map(([name, field]) => [name, `${field.kind}${field.isRequired ? "!" : ""}`]),
  );
}

const TRIP = {
  type: "object",
  required: ["city", "nights"],
  properties: {
    city: { type: "string", minLength: 1 },
    nights: { type: "integer", minimum: 1 },
    price: { type: ["number", "null"] },
    isQuiet: { type: "boolean" },
    board: { enum: ["none", "half", 3, null] },
    guests: { type: "array", items: { $ref: "#/$defs/guest" } },
    place: { anyOf: [{ $ref: "#/$defs/place" }, { type: "null" }], default: null },
    extra: {},
  },
  $defs: {
    guest: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    place: { type: "object", properties: { street: { type: "string" }, inside: { $ref: "#/$defs/place" } } },
  },
};

describe("form of a schema", () => {
  test("each type has its field, through references and nullable unions", () => {
    expect(kinds(TRIP)).toEqual({
      city: "text!",
      nights: "number!",
      price: "number",
      isQuiet: "boolean",
      board: "choice",
      guests: "list",
      place: "object",
      extra: "json",
    });
  });

  test.each([
    ["two types", { type: ["string", "number"] }],
    ["alternatives", { oneOf: [{ type: "string" }, { type: "number" }] }],
    ["a reference that leads nowhere", { $ref: "#/$defs/nobody" }],
    ["a reference elsewhere", { $ref: "https://example.com/schema" }],
    ["any keys", { type: "object", additionalProperties: { type: "string" } }],
    ["a list of anything", { type: "array" }],
    ["what always holds", true],
  ])("%s is edited as JSON", (_, schema) => {
    expect(kinds({ type: "object", properties: { one: schema } })).toEqual({ one: "json" });
  });

  test("recursive schema ends as JSON", () => {
    const [, place] = formOf(TRIP).fields.find(([name]) => name === "place") ?? [];
    const inside = place?.kind === "object" ? place.fields.map(([name, { kind }]) => [name, kind]) : [];
    expect(inside).toEqual([
      ["street", "text"],
      ["inside", "json"],
    ]);
  });

  test("any schema has a form", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (schema) => {
        const form = formOf({ type: "object", properties: { one: schema } });
        expect(argumentsOf(form, objectDraft(form, {})).errors.size).toBe(0);
      }),
    );
  });
});

/** Arguments typed into an empty form. */
function typed(fields: Record<string, Draft>) {
  const form = formOf(TRIP);
  const empty = objectDraft(form, {});
  const { value, errors: flaws } = argumentsOf(form, { ...empty, fields: { ...empty.fields, ...fields } });
  return { value, flaws: Object.fromEntries(flaws) };
}

const text = (text: string): Draft => ({ kind: "typed", text });

describe("arguments of a form", () => {
  test("empty optional field is left out, an empty required one is an error", () => {
    expect(typed({})).toEqual({ value: {}, flaws: { "/city": "missing", "/nights": "missing" } });
  });

  test("typed text becomes the type of the schema", () => {
    const given = { city: text("成都"), nights: text("3"), isQuiet: text("false"), board: text("3") };
    expect(typed(given)).toEqual({
      value: { city: "成都", nights: 3, isQuiet: false, board: 3 },
      flaws: {},
    });
  });

  test.each([
    ["abc", "not_a_number"],
    ["1.5", "not_whole"],
    [" ", "not_a_number"],
    ["1e999", "not_a_number"],
  ])("%j is not a whole number", (input, error) => {
    expect(typed({ city: text("x"), nights: text(input) }).flaws).toEqual({ "/nights": error });
  });

  test("error within a list has the path of its item", () => {
    const guests: Draft = {
      kind: "list",
      isGiven: true,
      items: [
        { kind: "object", isGiven: true, fields: { name: text("Ann") }, rest: {} },
        { kind: "json", text: "{" },
      ],
    };
    expect(typed({ city: text("x"), nights: text("1"), guests }).flaws).toEqual({ "/guests/1": "not_json" });
  });

  // A retry must not change the call.
  test("arguments survive the form unchanged, valid or not", () => {
    const form = formOf(TRIP);
    const anything = fc.dictionary(
      fc.oneof(fc.constantFrom(...Object.keys(TRIP.properties), "__proto__"), fc.string()),
      fc.oneof(
        fc.jsonValue().filter((value) => value !== null),
        fc.record({ street: fc.string({ minLength: 1 }) }),
        fc.array(fc.record({ name: fc.string() })),
      ),
    );
    fc.assert(
      fc.property(anything, (given) => {
        const value = JSON.parse(JSON.stringify({ city: "x", nights: 1, ...given }));
        const made = argumentsOf(form, objectDraft(form, value));
        expect([...made.errors.values()].filter((error) => error !== "missing")).toEqual([]);
        expect(made.value).toEqual(value);
      }),
    );
  });
});

const request = (start: number, end: number, more: Partial<ParsedRequest> = {}): ParsedRequest => ({
  arguments: {},
  column: 1,
  end,
  format: "vcp",
  leaked: false,
  line: 1,
  name: "demo_weather",
  outlook: "runs",
  start,
  ...more,
});

describe("offsets in a text", () => {
  test("byte offsets are converted for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (before, after) => {
        const bytes = new TextEncoder().encode(before).length;
        expect(offsetsIn(before + after)(bytes)).toBe(before.length);
      }),
    );
  });

  test("call after Chinese and an emoji is marked exactly", () => {
    const before = "查一下🌦️ ";
    const call = "<<<[TOOL_REQUEST]>>>末";
    const bytes = (text: string): number => new TextEncoder().encode(text).length;
    const parsed: ParsedReply = {
      requests: [request(bytes(before), bytes(before + call))],
      warnings: [],
      text: "",
    };
    expect(passagesOf(`${before}${call} 稍等`, parsed, true)).toEqual([
      { kind: "text", text: before },
      { kind: "call", text: call, number: 1, outlook: "runs" },
      { kind: "text", text: " 稍等" },
    ]);
  });

  test("passages add up to the text, with any warnings", () => {
    const place = fc.nat(60);
    const mark = fc
      .tuple(place, place)
      .map(([one, other]) => request(Math.min(one, other), Math.max(one, other)));
    const warning = place.map((at) => ({ at, column: 1, line: 1, kind: "k", message: "m" }));
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.array(mark),
        fc.array(warning),
        (text, requests, warnings) => {
          const passages = passagesOf(text, { requests, warnings, text }, true);
          expect(passages.map((passage) => passage.text).join("")).toBe(text);
        },
      ),
    );
  });

  test("open block is arriving until the text is complete, and half a marker is no warning before", () => {
    const text = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」x「末」\n<<<[END";
    const half = { at: 51, column: 1, line: 3, kind: "torn_marker", message: "" };
    const open: unknown = { ...request(0, 50, { outlook: "not_started" }), arguments: null };
    const parsed: ParsedReply = JSON.parse(JSON.stringify({ requests: [open], warnings: [half], text: "" }));
    const seen = (isWhole: boolean) =>
      passagesOf(text, parsed, isWhole).map((one) => ("outlook" in one ? one.outlook : one.kind));
    expect(seen(false)).toEqual(["arriving", "text"]);
    expect(seen(true)).toEqual(["not_started", "text", "warning"]);
  });

  test("pieces never split a character", () => {
    expect(afterPiece("a🌦b", 0, 2)).toBe(3);
    expect(afterPiece("a🌦b", 3, 5)).toBe(4);
  });
});

describe("tester address", () => {
  test("tool and arguments survive the address", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.dictionary(fc.string(), fc.jsonValue()), (tool, given) => {
        const args = JSON.parse(JSON.stringify(given));
        const { hash, pathname } = new URL(testerAddress(tool, args), "http://127.0.0.1");
        expect(pathname).toBe("/tester");
        expect(testerLocationOf(hash)).toEqual({ tool, arguments: args });
      }),
    );
  });

  test.each(["", "#arguments=", "#arguments=[1]", "#arguments={", "#tool"])("%j has no arguments", (hash) => {
    expect(testerLocationOf(hash).arguments ?? {}).toEqual({});
  });
});

test("example has all required arguments, and a call as a reply cannot end early", () => {
  const reply = exampleReply({ wire_name: "trip_plan", parameters: TRIP }, "A", "B");
  expect(reply).toContain(
    "tool_name:「始」trip_plan「末」,\ncity:「始」Paris「末」,\nnights:「始」1「末」\n",
  );
  expect(asReply("x", { text: "</tool_call>" }).match(/<\/tool_call>/g)).toHaveLength(1);
});
