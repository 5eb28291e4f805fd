import { beforeEach, expect, test, vi } from "vitest";

const STAGES = ["fresh-1", "fresh-2", "fresh-3"];

/** Ranges of each stage, as in a browser. */
const stages = new Map<string, Set<StaticRange>>();
const frames: FrameRequestCallback[] = [];
let isStill = false;
let now = 0;

class FakeRange {
  readonly startOffset: number;
  readonly endOffset: number;
  constructor({ startOffset, endOffset }: StaticRangeInit) {
    [this.startOffset, this.endOffset] = [startOffset, endOffset];
  }
}

beforeEach(() => {
  stages.clear();
  frames.length = 0;
  isStill = false;
  now = 1_000;
  vi.resetModules();
  vi.stubGlobal("CSS", { highlights: stages });
  vi.stubGlobal("Highlight", Set);
  vi.stubGlobal("StaticRange", FakeRange);
  vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
  vi.stubGlobal("matchMedia", () => ({
    get matches() {
      return isStill;
    },
  }));
  vi.spyOn(performance, "now").mockImplementation(() => now);
});

const load = async () => (await import("../src/chat/blocks/markdown/fresh.ts")).fadeIn;
const shown = (): string[] =>
  STAGES.map((name) => [...(stages.get(name) ?? [])].map((r) => `${r.startOffset}-${r.endOffset}`).join(" "));
function frame(ms: number): void {
  now += ms;
  for (const one of frames.splice(0)) one(now);
}

test("new words pass through the stages, then no frame is requested", async () => {
  const fadeIn = await load();
  const node = document.createTextNode("one two");
  fadeIn(node, 0, 3);
  expect(shown()).toEqual(["0-3", "", ""]);
  frame(60);
  fadeIn(node, 3, 7);
  expect(shown()).toEqual(["3-7", "0-3", ""]);
  frame(50);
  expect(shown()).toEqual(["", "3-7", "0-3"]);
  frame(50);
  expect(shown()).toEqual(["", "", "3-7"]);
  frame(50);
  expect(shown()).toEqual(["", "", ""]);
  expect(frames).toHaveLength(0);
  expect(node.data, "the text itself is left alone").toBe("one two");
});

test("reduced motion, long texts and hidden pages skip the fade", async () => {
  const fadeIn = await load();
  const node = document.createTextNode("a".repeat(1_000));
  isStill = true;
  fadeIn(node, 0, 3);
  isStill = false;
  fadeIn(node, 0, 401);
  fadeIn(node, 3, 3);
  expect(shown()).toEqual(["", "", ""]);
  for (let at = 0; at < 200; at += 1) fadeIn(node, at, at + 1);
  expect(stages.get("fresh-1")?.size).toBe(100);
});

test("browser without highlights shows the text", async () => {
  vi.stubGlobal("CSS", {});
  const fadeIn = await load();
  fadeIn(document.createTextNode("one"), 0, 3);
  expect(frames).toHaveLength(0);
});
