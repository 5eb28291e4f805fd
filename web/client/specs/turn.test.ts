import { expect, test } from "vitest";
import type { Event } from "../src/api.ts";
import { TurnStore } from "../src/index.ts";

const at = { turn_id: "t", timestamp: 1 };
let seq = 0;
/** An event with the next number. */
function event(fields: object): Event {
  seq += 1;
  return JSON.parse(JSON.stringify({ ...at, seq, ...fields }));
}

/** A store whose frames the test triggers. */
function drawn(): { store: TurnStore; frame(): void } {
  let waiting: (() => void)[] = [];
  const store = new TurnStore(undefined, (flush) => waiting.push(flush));
  return {
    store,
    frame: () => {
      const now = waiting;
      waiting = [];
      for (const flush of now) flush();
    },
  };
}

function textOf(store: TurnStore, index: number): string | undefined {
  const block = store.block(index);
  return block?.kind === "text" ? block.text : undefined;
}

test("first delta is shown at once, later ones once per frame", () => {
  seq = 0;
  const { store, frame } = drawn();
  store.take(event({ type: "block_start", block: 0, kind: "text" }));
  frame();
  frame();
  let drawings = 0;
  store.subscribeBlock(0, () => {
    drawings += 1;
  });
  store.take(event({ type: "content_delta", block: 0, text: "a" }));
  expect(textOf(store, 0)).toBe("a");
  for (const text of ["b", "c", "d"]) store.take(event({ type: "content_delta", block: 0, text }));
  expect([textOf(store, 0), drawings]).toEqual(["a", 1]);
  frame();
  expect([textOf(store, 0), drawings]).toEqual(["abcd", 2]);
  frame();
  expect(drawings).toBe(2);
});

test("delta notifies only readers of its block", () => {
  seq = 0;
  const { store, frame } = drawn();
  store.take(event({ type: "block_start", block: 0, kind: "text" }));
  store.take(event({ type: "block_start", block: 1, kind: "text" }));
  frame();
  frame();
  const notified: string[] = [];
  store.subscribeBlock(0, () => notified.push("0"));
  store.subscribeBlock(1, () => notified.push("1"));
  store.subscribeOutline(() => notified.push("outline"));
  store.subscribeHead(() => notified.push("head"));
  const before = store.block(0);
  store.take(event({ type: "content_delta", block: 1, text: "x" }));
  frame();
  expect(notified).toEqual(["1"]);
  expect(store.block(0)).toBe(before);
});

test("callbacks get text, calls and audio once, as they arrive", () => {
  seq = 0;
  const { store } = drawn();
  const notified: unknown[] = [];
  store.listen({
    onText: (delta, block) => notified.push(["text", delta, block]),
    onToolCall: (call, block) => notified.push(["call", call.tool_name, call.status, block]),
    onAudio: (chunk, block) => notified.push(["audio", chunk.data, chunk.sampleRate, block]),
  });
  const log = [
    event({ type: "block_start", block: 0, kind: "text" }),
    event({ type: "content_delta", block: 0, text: "hi" }),
    event({
      type: "tool_use",
      block: 1,
      tool_id: "c",
      tool_name: "time.now",
      effect: "read",
      status: "preparing",
    }),
    event({ type: "tool_input_delta", tool_id: "c", delta: "{}" }),
    event({ type: "tool_input", tool_id: "c", arguments: {} }),
    event({ type: "tool_start", tool_id: "c", early: false, attempt: 1 }),
    event({ type: "tool_result", tool_id: "c", status: "success", output: "now" }),
    event({ type: "block_start", block: 2, kind: "audio" }),
    event({ type: "audio_delta", block: 2, data: "AAAA", sample_rate: 24_000 }),
  ];
  for (const event of [...log, ...log]) store.take(event);
  expect(notified).toEqual([
    ["text", "hi", 0],
    ["call", "time.now", "preparing", 1],
    ["call", "time.now", "queued", 1],
    ["call", "time.now", "running", 1],
    ["call", "time.now", "success", 1],
    ["audio", "AAAA", 24_000, 2],
  ]);
});

test("unavailable store is retried until it is available", () => {
  seq = 0;
  const { store, frame } = drawn();
  store.take({ type: "waiting", turn_id: "t", timestamp: 1, reason: "store", why: "since 12:00" });
  frame();
  expect(store.head().waiting).toEqual({ reason: "store" });
  store.take(event({ type: "block_start", block: 0, kind: "text" }));
  frame();
  expect(store.head().waiting).toBeUndefined();
});
