import fc from "fast-check";
import { expect, test } from "vitest";
import { GrowingMarkdown, Passages, read } from "../src/index.ts";
import { documents } from "./documents.ts";

test("passages are the whole text, each of several blocks, none of only space", () => {
  fc.assert(
    fc.property(documents, (text) => {
      const tokens = read(text);
      const passages = new Passages().of(tokens);
      expect(passages.flat()).toEqual(tokens);
      const isBlank = passages.map((passage) => passage.every(({ type }) => type === "space"));
      expect(isBlank.slice(1)).not.toContain(true);
    }),
    { numRuns: 100 },
  );
});

test("finished passage is never changed", () => {
  const paragraphs = Array.from({ length: 60 }, (_, at) => `paragraph ${at}`);
  const [growing, passages] = [new GrowingMarkdown(), new Passages()];
  const early = passages.of(growing.read(paragraphs.slice(0, 20).join("\n\n")));
  const late = passages.of(growing.read(paragraphs.join("\n\n")));
  expect(early.length).toBeGreaterThan(2);
  expect(late[0]).toBe(early[0]);
  expect(late[1]).toBe(early[1]);
  expect(late.at(-1)).not.toBe(early.at(-1));
});

test("cuts do not depend on the following text", () => {
  fc.assert(
    fc.property(documents, documents, (text, more) => {
      const [short, long] = [new Passages().of(read(text)), new Passages().of(read(text + more))];
      const blocks = (passages: typeof short): number[] =>
        passages.map((passage) => passage.filter(({ type }) => type !== "space").length);
      const [before, after] = [blocks(short), blocks(long)];
      // All but the last are full.
      expect(new Set([...before.slice(0, -1), ...after.slice(0, -1)]).size).toBeLessThan(2);
    }),
    { numRuns: 100 },
  );
});
