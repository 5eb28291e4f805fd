import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PartialJson } from "../src/index.ts";

const object = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary" }));

/** JSON as models write it: compact, formatted or broken. */
const texts = fc.oneof(
  object.map((value) => JSON.stringify(value)),
  object.map((value) => JSON.stringify(value, null, 3)),
  object.chain((value) => {
    const text = JSON.stringify(value);
    return fc
      .tuple(fc.nat(text.length), fc.string())
      .map(([at, wrong]) => text.slice(0, at) + wrong + text.slice(at));
  }),
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0-1.e+tfn \n') }),
);

describe("incomplete JSON", () => {
  test("any text is parsed without errors, and earlier results stay", () => {
    fc.assert(
      fc.property(texts, (text) => {
        const growing = new PartialJson();
        let before = { pretty: "", keys: [] as string[], complete: 0, isBroken: false };
        for (let at = 0; at <= text.length; at += 1) {
          const { pretty, entries, state } = growing.read(text.slice(0, at));
          const keys = entries.map(({ key }) => key);
          const complete = entries.filter(({ isComplete }) => isComplete).length;
          expect(pretty.startsWith(before.pretty)).toBe(true);
          expect(keys.slice(0, before.keys.length)).toEqual(before.keys);
          expect(complete).toBeGreaterThanOrEqual(before.complete);
          expect(entries.slice(0, -1).every(({ isComplete }) => isComplete)).toBe(true);
          expect(!before.isBroken || state === "broken").toBe(true);
          before = { pretty, keys, complete, isBroken: state === "broken" };
        }
        expect(growing.readChars).toBeLessThanOrEqual(text.length);
      }),
      { numRuns: 200 },
    );
  }, 120_000);

  test("result is the same in any pieces", () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(80), { maxLength: 8 }), (text, cuts) => {
        const pieces = new PartialJson();
        for (const cut of cuts.sort((a, b) => a - b)) pieces.read(text.slice(0, cut));
        const resultOf = ({ state, entries, pretty, path }: PartialJson) => ({
          state,
          entries,
          pretty,
          path,
        });
        expect(resultOf(pieces.read(text))).toEqual(resultOf(new PartialJson().read(text)));
      }),
      { numRuns: 200 },
    );
  }, 120_000);

  test("whole object is complete, and formatted", () => {
    fc.assert(
      fc.property(object, (value) => {
        const text = JSON.stringify(value);
        const whole = new PartialJson().read(text);
        expect(whole.state).toBe("complete");
        expect(JSON.parse(whole.pretty)).toEqual(JSON.parse(text));
        expect(whole.entries.map(({ key }) => key)).toEqual(
          Object.keys(JSON.parse(text)).length === 0 ? [] : keysOf(text),
        );
        expect(whole.entries.every(({ isComplete }) => isComplete)).toBe(true);
      }),
      { numRuns: 200 },
    );
  }, 120_000);

  test("text is broken exactly where no JSON object can follow", () => {
    fc.assert(
      fc.property(texts, (text) => {
        let isObject = false;
        try {
          const value: unknown = JSON.parse(text);
          isObject = typeof value === "object" && value !== null && !Array.isArray(value);
        } catch {}
        expect(new PartialJson().read(text).state === "complete").toBe(isObject);
      }),
      { numRuns: 200 },
    );
  }, 120_000);
});

/** Keys in the order of the text, which differs from the order of an object with numeric keys. */
function keysOf(text: string): string[] {
  const keys: string[] = [];
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:\\.|[^"\\])*"(:)?|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else if (depth === 1 && token.endsWith(":")) keys.push(JSON.parse(token.slice(0, -1)));
  }
  return keys;
}

test.each<[string, string, string[], (string | number)[] | undefined]>([
  ["", "empty", [], undefined],
  [" {", "open", [], [""]],
  ['{"ci', "open", [], [""]],
  ['{"city"', "open", ["city…"], ["city"]],
  ['{"city": "Chen', "open", ["city…"], ["city"]],
  ['{"city": "Chengdu"', "open", ['city="Chengdu"'], ["city"]],
  ['{"a":1,"b":{"c":[true,{"d', "open", ["a=1", "b…"], ["b", "c", 1, ""]],
  ['{"a":1,"b":{"c":[true,{}]}}', "complete", ["a=1", 'b={"c": [true,{}]}'], undefined],
  ['{"a":01', "broken", ["a…"], undefined],
  ['{"a":tru}', "broken", ["a…"], undefined],
  ["Sure, here", "broken", [], undefined],
  ["[1]", "broken", [], undefined],
])("keys of %j", (text, state, entries, path) => {
  const partial = new PartialJson().read(text);
  expect(partial.state).toBe(state);
  expect(
    partial.entries.map(({ key, isComplete, value }) => (isComplete ? `${key}=${value}` : `${key}…`)),
  ).toEqual(entries);
  expect(partial.path).toEqual(path);
});

test("text is formatted while it arrives", () => {
  expect(new PartialJson().read('{"a":[1,2],"b":{},"c":"x\\n').pretty).toBe(
    '{\n  "a": [\n    1,\n    2\n  ],\n  "b": {},\n  "c": "x\\n',
  );
});

test("growing text costs each character once; another text is parsed again", () => {
  const partial = new PartialJson();
  const text = `{"text": "${"word ".repeat(9_600)}"}`;
  for (let at = 0; at <= text.length + 4; at += 4) partial.read(text.slice(0, at));
  expect(partial.readChars).toBe(text.length);
  expect(partial.read('{"other": 1').entries).toEqual([{ key: "other", isComplete: false, value: "" }]);
}, 120_000);
