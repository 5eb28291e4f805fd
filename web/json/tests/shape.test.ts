import { expect, test } from "vitest";
import { shapeOf } from "../src/index.ts";

test.each<[unknown, string]>([
  ["plain", "text"],
  ["42", "text"],
  [42, "text"],
  ["{broken", "text"],
  ['{"a":1}', "json"],
  [{ a: [1] }, "json"],
  [[], "json"],
  [[{ a: 1 }, { a: 2, b: null }], "rows"],
  ['[{"city":"Paris"},{"city":"Tokyo"}]', "rows"],
  [[{ a: { b: 1 } }], "json"],
  [[1, 2], "json"],
])("%j is shown as %s", (value, kind) => expect(shapeOf(value).kind).toBe(kind));
