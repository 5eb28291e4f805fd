// Turns in the history: their addresses, days and timelines.

import { type Event, Throughline, type TurnInfo } from "@throughline/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SPANS } from "../src/history/model/filter.ts";
import {
  type TurnsLocation,
  turnAddressOf,
  turnsLocationOf,
  turnsQueryOf,
  withTurnPart,
} from "../src/history/model/turn-filter.ts";
import { itemsOf, Turns, turnTone } from "../src/history/model/turns.ts";
import { tokensText } from "../src/history/texts.ts";
import { turnStatusWord } from "../src/history/words.ts";
import { lengthOf, storyOf } from "../src/shared/charts/story.ts";

const NOW = new Date(2026, 10, 22, 14, 2, 11).getTime();

describe("filters of turns", () => {
  test("any location survives its address", () => {
    const text = fc.string({ minLength: 1, unit: "grapheme" });
    const id = fc.string({ minLength: 1 }).filter((id) => !id.includes(","));
    const filter = fc.record(
      {
        q: text,
        status: text,
        agent: text,
        model: text,
        since: fc.constantFrom(...SPANS),
        conversation_id: text,
      },
      { requiredKeys: [] },
    );
    const location: fc.Arbitrary<TurnsLocation> = fc.record(
      { filter, turn: text, compare: fc.tuple(id, id) },
      { requiredKeys: ["filter"] },
    );
    fc.assert(
      fc.property(location, (location) => {
        expect(turnsLocationOf(new URL(turnAddressOf(location), "http://page").search)).toEqual(location);
      }),
    );
  });

  test("unknown parts and a single compared turn are ignored", () => {
    expect(turnsLocationOf("?since=1999&tool=x&compare=turn_1&q=tea")).toEqual({ filter: { q: "tea" } });
  });

  test("filter becomes the query of the server", () => {
    expect(turnsQueryOf({ status: "error, running,,", since: "hour", model: "a/b" }, NOW)).toEqual({
      status: "error,running",
      from: NOW - 3_600_000,
      model: "a/b",
    });
    expect(withTurnPart({ q: "tea", model: "a/b" }, "model", undefined)).toEqual({ q: "tea" });
  });
});

const turn = (started_at: number): TurnInfo => ({
  turn_id: String(started_at),
  agent: "default",
  input: "",
  answer: "",
  status: "completed",
  started_at,
  calls: 0,
  failed_calls: 0,
});

test("each day precedes its turns, once", () => {
  const [noon, early, before] = [
    new Date(2026, 10, 22, 12).getTime(),
    new Date(2026, 10, 22, 0, 1).getTime(),
    new Date(2026, 10, 21, 23, 59).getTime(),
  ];
  const items = itemsOf([turn(noon), turn(early), turn(before)]);
  expect(items.map((item) => ("day" in item ? new Date(item.day).getDate() : item.turn.started_at))).toEqual([
    22,
    noon,
    early,
    21,
    before,
  ]);
});

test("empty search pages are followed, and text searches have no count", async () => {
  const requests: string[] = [];
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input) => {
      const url = new URL(String(input));
      requests.push(url.pathname.split("/").at(-1) + url.search);
      const counts = { total: 9, by_status: [{ name: "completed", count: 9 }], by_model: [], by_agent: [] };
      if (url.pathname.endsWith("/turn-counts")) return Response.json(counts);
      const cursor = url.searchParams.get("cursor");
      if (cursor === "b") return Response.json({ items: [turn(NOW)], next: "c", partial: true });
      if (cursor === "c") return Response.json({ items: [], next: "d", partial: true });
      if (cursor === "d") return Response.json({ items: [turn(NOW - 1)] });
      return Response.json({ items: [], next: cursor === "a" ? "b" : "a", partial: true });
    },
  });
  const turns = new Turns(client, () => NOW);
  await turns.show({ q: "tea" });
  expect(turns.get()).toMatchObject({ rows: [turn(NOW)], next: "c", total: undefined, failure: undefined });
  await turns.more();
  expect(turns.get()).toMatchObject({ rows: [turn(NOW), turn(NOW - 1)], next: undefined });
  const pages = requests.filter((path) => path.startsWith("turns?"));
  expect(pages.map((path) => new URLSearchParams(path.slice(6)).get("cursor"))).toEqual([
    null,
    "a",
    "b",
    "c",
    "d",
  ]);
  expect(pages.every((path) => path.includes("q=tea"))).toBe(true);
  expect(requests.filter((path) => path.startsWith("turn-counts"))).toEqual(["turn-counts", "turn-counts"]);
});

test("open approvals are loaded only while turns are running", async () => {
  let status = "running";
  const requests: string[] = [];
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input) => {
      const url = new URL(String(input));
      if (url.pathname.endsWith("/calls")) {
        requests.push(url.search);
        return Response.json({ items: [{ turn_id: "turn_1" }, { turn_id: "turn_2" }] });
      }
      const counts = { total: 1, by_status: [], by_model: [], by_agent: [] };
      return Response.json(
        url.pathname.endsWith("/turn-counts") ? counts : { items: [{ ...turn(NOW), status }] },
      );
    },
  });
  const turns = new Turns(client, () => NOW);
  await turns.show({});
  expect([...turns.get().asking]).toEqual(["turn_1", "turn_2"]);
  expect(requests).toEqual(["?status=awaiting_approval&limit=200"]);
  status = "completed";
  await turns.refresh();
  expect(turns.get().asking.size).toBe(0);
  expect(requests).toHaveLength(1);
  expect(turnTone("asks")).toBe("waiting");
});

test("unknown status has its own name and no tone", () => {
  expect(turnTone("dreaming")).toBe("none");
  expect(turnStatusWord("dreaming", { turnStatus: {} } as never)).toBe("dreaming");
  expect([tokensText(1_240, 80), tokensText(null, 80), tokensText(undefined, undefined)]).toEqual([
    "1,240 → 80",
    "? → 80",
    "",
  ]);
});

/** Events of a turn that began at 1,000, each with its offset in milliseconds. */
const events = (...all: readonly (readonly [number, object])[]): Event[] =>
  all.map(
    ([ms, event], at) => ({ turn_id: "turn_1", seq: at + 1, timestamp: 1_000 + ms, ...event }) as Event,
  );

describe("timeline of a turn", () => {
  const call = (id: string, effect: string) => ({
    type: "tool_use",
    step: 1,
    tool_id: id,
    tool_name: `demo.${id}`,
    effect,
  });
  const whole = events(
    [0, { type: "stream_start" }],
    [10, { type: "step_start", step: 1, model: "one" }],
    [110, { type: "block_start", step: 1, block: 0, kind: "text" }],
    [150, call("look", "read")],
    [160, call("note", "write")],
    [170, { type: "tool_start", tool_id: "look" }],
    [200, { type: "step_end", step: 1, finish: "tool_calls", usage: { input_tokens: 7, output_tokens: 3 } }],
    [210, { type: "approval_request", tool_id: "note", approval_id: "a" }],
    [400, { type: "tool_result", tool_id: "look", status: "success" }],
    [710, { type: "approval_resolved", tool_id: "note", approval_id: "a", decision: "approve" }],
    [720, { type: "tool_start", tool_id: "note" }],
    [800, { type: "tool_result", tool_id: "note", status: "success" }],
    [800, { type: "step_start", step: 2, model: "two" }],
    [900, { type: "block_start", step: 2, block: 3, kind: "text" }],
    [950, { type: "step_end", step: 2, finish: "stop" }],
    [950, { type: "stream_end", status: "completed" }],
  );

  test("each model call has its tool calls, with their times by kind", () => {
    const { steps, whole: length } = storyOf(whole);
    expect(length).toBe(950);
    expect(
      steps.map(({ model, inputTokens, outputTokens, finish }) => [model, inputTokens, outputTokens, finish]),
    ).toEqual([
      ["one", 7, 3, "tool_calls"],
      ["two", undefined, undefined, "stop"],
    ]);
    expect(steps.map(({ stretches }) => stretches)).toEqual([
      [
        { kind: "waiting", from: 10, to: 110 },
        { kind: "model", from: 110, to: 200 },
      ],
      [
        { kind: "waiting", from: 800, to: 900 },
        { kind: "model", from: 900, to: 950 },
      ],
    ]);
    const [first, note] = steps[0]?.calls ?? [];
    expect(first?.stretches).toEqual([{ kind: "reading", from: 170, to: 400 }]);
    expect(note?.stretches).toEqual([
      { kind: "approval", from: 210, to: 710 },
      { kind: "writing", from: 720, to: 800 },
    ]);
    expect(lengthOf(note?.stretches ?? [])).toBe(590);
  });

  test("pauses and further attempts have their own kind", () => {
    const { steps } = storyOf(
      events(
        [0, { type: "stream_start" }],
        [10, { type: "step_start", step: 1, model: "one", attempt: 1 }],
        [20, { type: "waiting", step: 1, reason: "first_byte" }],
        [30, { type: "waiting", step: 1, reason: "rate_limit" }],
        [230, { type: "step_start", step: 1, model: "two", attempt: 2 }],
        [300, call("look", "read")],
        [310, { type: "tool_start", tool_id: "look", attempt: 1 }],
        [320, { type: "step_end", step: 1, finish: "tool_calls" }],
        [330, { type: "waiting", reason: "store" }],
        [400, { type: "tool_start", tool_id: "look", attempt: 2 }],
        [410, { type: "approval_request", tool_id: "look", approval_id: "a" }],
        [420, { type: "approval_resolved", tool_id: "look", approval_id: "a", decision: "approve" }],
        [500, { type: "tool_result", tool_id: "look", status: "success" }],
        [500, { type: "stream_end", status: "completed" }],
      ),
    );
    expect(steps[0]?.model).toBe("two");
    expect(steps[0]?.stretches).toEqual([
      { kind: "waiting", from: 10, to: 30 },
      { kind: "retry", from: 30, to: 230 },
      { kind: "waiting", from: 230, to: 300 },
      { kind: "model", from: 300, to: 320 },
    ]);
    expect(steps[0]?.calls[0]?.stretches).toEqual([
      { kind: "reading", from: 310, to: 400 },
      { kind: "retry", from: 400, to: 410 },
      { kind: "approval", from: 410, to: 420 },
      { kind: "retry", from: 420, to: 500 },
    ]);
  });

  test("open spans of a running turn last until now", () => {
    const { steps, whole: length } = storyOf(whole.slice(0, 8), 1_500);
    expect(length).toBe(500);
    expect(steps[0]?.calls.map(({ stretches }) => stretches)).toEqual([
      [{ kind: "reading", from: 170, to: 500 }],
      [{ kind: "approval", from: 210, to: 500 }],
    ]);
  });

  test("any prefix of events has spans within the turn", () => {
    fc.assert(
      fc.property(fc.nat(whole.length), (count) => {
        const { steps, whole: length } = storyOf(whole.slice(0, count));
        for (const { stretches } of steps.flatMap((step) => [step, ...step.calls])) {
          for (const { from, to } of stretches) {
            expect(from).toBeLessThanOrEqual(to);
            expect(to).toBeLessThanOrEqual(length);
          }
        }
      }),
    );
  });
});
