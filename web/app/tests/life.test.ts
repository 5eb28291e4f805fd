import { emptyMessage, TurnStore } from "@throughline/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { directionOf, live, moodOf, motionAt, type WatchedConversation } from "../src/avatar/life.ts";

const done: string[] = [];
const stage = {
  mood: (mood: string): void => void done.push(mood),
  look: (x?: number, y?: number): void => void done.push(x === undefined ? "at you" : `at ${x} ${y}`),
};

beforeEach(() => {
  done.length = 0;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  document.body.innerHTML = "";
});

function rect(left: number, top: number, width = 100, height = 100): DOMRect {
  return { left, top, width, height } as DOMRect;
}

/** A card with this status and position. */
function card(status: string, box: DOMRect): void {
  const element = document.createElement("div");
  element.className = "card";
  element.dataset.status = status;
  element.getBoundingClientRect = () => box;
  document.body.replaceChildren(element);
}

function talking(status?: "running" | "awaiting_approval") {
  const store = new TurnStore({
    ...emptyMessage(),
    blocks: status === undefined ? [] : [{ kind: "tool_call", tool_id: "c", tool_name: "t", status }],
  });
  const listeners = new Set<() => void>();
  const state = { running: { key: "1", turnId: "turn_1", store, draft: undefined } as unknown };
  const talk = {
    get: () => ({ ...state, phase: "ready", connection: undefined, isStopping: false }),
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  } as unknown as WatchedConversation;
  const face = document.createElement("div");
  face.getBoundingClientRect = () => rect(900, 200);
  const stop = live(stage, talk, () => face);
  return { state, stop, tell: () => [...listeners].map((listener) => listener()), listeners };
}

test("avatar thinks with the model, and looks at the user", () => {
  const { state, tell, stop } = talking();
  vi.advanceTimersByTime(20);
  expect(done).toEqual(["thinks", "at you"]);
  state.running = undefined;
  tell();
  vi.advanceTimersByTime(20);
  expect(done).toEqual(["thinks", "at you", "rest", "at you"]);
  stop();
});

test("avatar looks at the running card, also after scrolling", () => {
  card("running", rect(400, 100));
  const { stop } = talking("running");
  vi.advanceTimersByTime(20);
  expect(done).toEqual(["watches", "at -1 -0.15"]);
  card("running", rect(650, 400));
  document.dispatchEvent(new Event("scroll"));
  vi.advanceTimersByTime(20);
  expect(done.at(-1)).toBe("at -0.5 0.45");
  stop();
});

test("avatar looks alternately at an approval and at the user until it is answered", () => {
  card("awaiting_approval", rect(650, 175));
  const { state, tell, stop, listeners } = talking("awaiting_approval");
  vi.advanceTimersByTime(20);
  expect(done).toEqual(["waits", "at -0.5 0"]);
  vi.advanceTimersByTime(2_700);
  expect(done.at(-1)).toBe("at you");
  vi.advanceTimersByTime(1_900);
  expect(done.at(-1)).toBe("at -0.5 0");
  state.running = undefined;
  tell();
  vi.advanceTimersByTime(20);
  expect(done.slice(-2)).toEqual(["rest", "at you"]);
  stop();
  expect([vi.getTimerCount(), listeners.size], "no timers or listeners remain").toEqual([0, 0]);
});

test("direction is limited to the sides, and writing has no mood", () => {
  expect(directionOf(rect(0, 0), rect(9_000, -9_000))).toEqual({ x: 1, y: -1 });
  expect(moodOf("writing")).toBe("rest");
  expect(moodOf("reconnecting")).toBe("rest");
});

test("avatar shrugs at failures only", () => {
  expect(motionAt({ status: "error" })).toBe("Shrug");
  expect(motionAt({ status: "timed_out" })).toBe("Shrug");
  expect(motionAt({ status: "denied" })).toBeUndefined();
  expect(motionAt({ status: "success" })).toBeUndefined();
});
