import { cleanup, render, renderHook, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type CallInfo, Throughline, type WaterfallInfo } from "@throughline/client";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { Filters } from "../src/history/filters.tsx";
import { Calls } from "../src/history/model/calls.ts";
import { fileName } from "../src/history/model/export.ts";
import {
  addressOf,
  type CallsLocation,
  callsLocationOf,
  type Filter,
  isOfFailed,
  queryOf,
  SPANS,
  withPart,
} from "../src/history/model/filter.ts";
import { argumentsLine, moment, stateOf, stateWord } from "../src/history/model/row.ts";
import { useHistoryWords } from "../src/history/words.ts";
import { en } from "../src/i18n/en.ts";
import { zh } from "../src/i18n/zh.ts";
import { language } from "../src/preferences.ts";
import { partsOf, sumOf } from "../src/shared/charts/parts.ts";
import { Waterfall } from "../src/shared/charts/waterfall.tsx";

const NOW = new Date(2026, 10, 22, 14, 2, 11).getTime();
const HOUR_MS = 3_600_000;

beforeEach(() => language.set("en"));

describe("filters of calls", () => {
  test("any location survives its address", () => {
    const text = fc.string({ minLength: 1, unit: "grapheme" });
    const location: fc.Arbitrary<CallsLocation> = fc.record(
      {
        filter: fc.record(
          {
            q: text,
            tool: text,
            status: text,
            slow: text,
            since: fc.constantFrom(...SPANS),
            conversation_id: text,
            turn_id: text,
          },
          { requiredKeys: [] },
        ),
        call: text,
      },
      { requiredKeys: ["filter"] },
    );
    fc.assert(
      fc.property(location, (location) => {
        expect(callsLocationOf(new URL(addressOf(location), "http://page").search)).toEqual(location);
      }),
    );
  });

  test("unknown parts of an address are ignored", () => {
    expect(callsLocationOf("?since=1999&color=red&tool=&q=tea")).toEqual({ filter: { q: "tea" } });
  });

  test.each([
    [{}, {}],
    [
      { q: "tea", tool: "demo.weather", status: "error" },
      { q: "tea", tool: "demo.weather", status: "error" },
    ],
    [{ status: "error, timed_out,,error" }, { status: "error,timed_out" }],
    [{ status: "," }, {}],
    [{ since: "hour" as const }, { from: NOW - HOUR_MS }],
    [
      { since: "day" as const, slow: "1" },
      { from: NOW - 24 * HOUR_MS, longer_than_ms: 1_000 },
    ],
    [{ since: "month" as const }, { from: NOW - 720 * HOUR_MS }],
    [{ since: "today" as const }, { from: new Date(2026, 10, 22).getTime() }],
    [
      { since: "week" as const, turn_id: "turn_1" },
      { from: NOW - 168 * HOUR_MS, turn_id: "turn_1" },
    ],
  ])("%o becomes the query %o", (filter, query) => {
    expect(queryOf(filter, NOW)).toEqual(query);
  });

  test.each([
    ["error,timed_out,unknown", true],
    ["unknown,error,timed_out", true],
    ["error,timed_out", false],
    ["error,timed_out,denied", false],
    ["error,timed_out,unknown,denied", false],
    ["error", false],
  ])("status %s counts as all failures: %s", (status, expected) => {
    expect(isOfFailed({ status })).toBe(expected);
  });

  test("removed part matches everything again", () => {
    expect(withPart({ q: "tea", status: "error" }, "status", undefined)).toEqual({ q: "tea" });
  });
});

function call(n: number): CallInfo {
  return {
    tool_id: `turn_1.${n}`,
    turn_id: "turn_1",
    step: 1,
    tool_name: "time.now",
    source: "builtin",
    effect: "read",
    status: "success",
    arguments: "{}",
    arguments_text: "{}",
    started_at: n,
  };
}

/** A server with two pages of calls, and the requests it got. */
function server(answer?: (url: URL) => Promise<Response> | undefined) {
  const requests: string[] = [];
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input) => {
      const url = new URL(String(input));
      requests.push(url.pathname.split("/").at(-1) + url.search);
      const own = answer?.(url);
      if (own !== undefined) return own;
      if (url.pathname.endsWith("/counts")) {
        const counts = [
          { name: "success", count: 3 },
          { name: "error", count: 1 },
        ];
        return Response.json({ total: 4, by_status: counts, by_tool: [{ name: "time.now", count: 4 }] });
      }
      const isSecond = url.searchParams.get("cursor") === "c";
      return Response.json(isSecond ? { items: [call(1)] } : { items: [call(3), call(2)], next: "c" });
    },
  });
  return { requests, calls: new Calls(client, () => NOW) };
}

describe("list of calls", () => {
  test("next page continues at the end of the previous one, once", async () => {
    const { requests, calls } = server();
    await calls.show({ tool: "time.now" });
    await Promise.all([calls.more(), calls.more()]);
    await calls.more();
    expect(calls.get().rows.map((row) => row.tool_id)).toEqual(["turn_1.3", "turn_1.2", "turn_1.1"]);
    expect(requests.filter((one) => one.startsWith("calls?"))).toEqual([
      "calls?tool=time.now&limit=100",
      "calls?tool=time.now&limit=100&cursor=c",
    ]);
  });

  test("empty search pages are followed, and their count is unknown", async () => {
    const { requests, calls } = server(async (url) => {
      if (url.pathname.endsWith("/counts"))
        return Response.json({ total: 1, by_status: [], by_tool: [], partial: true });
      const isLast = url.searchParams.get("cursor") === "b";
      const next = url.searchParams.has("cursor") ? "b" : "a";
      return Response.json(isLast ? { items: [call(1)] } : { items: [], next, partial: true });
    });
    await calls.show({ q: "tea" });
    expect(calls.get().rows.map((row) => row.tool_id)).toEqual(["turn_1.1"]);
    expect(calls.get().total).toBeUndefined();
    expect(requests.filter((one) => one.startsWith("calls?"))).toHaveLength(3);
  });

  test("counts of other states and tools are shown", async () => {
    const { requests, calls } = server();
    await calls.show({ status: "error", tool: "time.now" });
    expect(requests.filter((one) => one.startsWith("counts"))).toEqual([
      "counts?tool=time.now",
      "counts?status=error",
    ]);
    expect(calls.get()).toMatchObject({ total: 1, ofAnyStatus: 4 });
  });

  test("counts of several states are added", async () => {
    const { requests, calls } = server();
    await calls.show({ status: "error,timed_out,success" });
    expect(requests).toContain("calls?status=error%2Ctimed_out%2Csuccess&limit=100");
    expect(calls.get()).toMatchObject({ total: 4, ofAnyStatus: 4 });
  });

  test("response to an outdated filter is ignored", async () => {
    let answerOld: (response: Response) => void = () => undefined;
    const { calls } = server((url) =>
      url.searchParams.get("q") === "old" && url.pathname.endsWith("/calls")
        ? new Promise((resolve) => {
            answerOld = resolve;
          })
        : undefined,
    );
    const old = calls.show({ q: "old" });
    await calls.show({ q: "new" });
    answerOld(Response.json({ items: [call(99)] }));
    await old;
    expect(calls.get().rows.map((row) => row.tool_id)).toEqual(["turn_1.3", "turn_1.2"]);
  });

  test("refused page keeps the rows, and is not retried automatically", async () => {
    const { requests, calls } = server((url) =>
      url.searchParams.has("cursor") ? Promise.resolve(new Response("{}", { status: 500 })) : undefined,
    );
    await calls.show({});
    await calls.more();
    await calls.more();
    expect(calls.get().rows).toHaveLength(2);
    expect(calls.get().failure).toBeInstanceOf(Error);
    expect(requests.filter((one) => one.includes("cursor"))).toHaveLength(1);
  });
});

describe("status filter", () => {
  const counts = [
    { name: "success", count: 5 },
    { name: "error", count: 2 },
    { name: "timed_out", count: 1 },
    { name: "denied", count: 1 },
  ];
  /** The chips for this filter, with pressed ones in brackets; clicks return the new filter. */
  function show(filter: Filter, statuses = counts) {
    let chosen: Filter | undefined;
    const state = {
      ...new Calls(new Throughline({ baseUrl: "http://server" })).get(),
      statuses,
      ofAnyStatus: 9,
    };
    render(
      <Filters
        state={state}
        filter={filter}
        filterBy={(filter) => {
          chosen = filter;
        }}
      />,
    );
    const all = within(screen.getByRole("group", { name: "Status" })).getAllByRole("button");
    return {
      chips: all.map((chip) =>
        chip.getAttribute("aria-pressed") === "true" ? `[${chip.textContent}]` : chip.textContent,
      ),
      click: async (name: RegExp) => {
        await userEvent.click(screen.getByRole("button", { name }));
        return chosen;
      },
    };
  }
  const SLOW = "Longer than 1 s";

  test("several kinds of failure form one choice with details", async () => {
    const none = show({});
    expect(none.chips).toEqual([
      "[All 9]",
      "Any failure 3",
      "Done 5",
      "Failed 2",
      "Timed out 1",
      "Denied 1",
      SLOW,
    ]);
    expect(await none.click(/^Any failure/)).toEqual({ status: "error,timed_out,unknown" });
  });

  test("failures are selected by an address in any order; a click on a part narrows them", async () => {
    const { chips, click } = show({ status: "timed_out,unknown,error", tool: "a" });
    expect(chips).toEqual([
      "All 9",
      "[Any failure 3]",
      "Done 5",
      "[Failed 2]",
      "[Timed out 1]",
      "Denied 1",
      SLOW,
    ]);
    expect(await click(/^Failed/)).toEqual({ status: "error", tool: "a" });
    expect(await click(/^Any failure/)).toEqual({ tool: "a" });
  });

  test("other combinations show each selected status, also without calls", async () => {
    const { chips, click } = show({ status: "denied,unknown" });
    expect(chips).toEqual([
      "All 9",
      "Any failure 3",
      "Done 5",
      "Failed 2",
      "Timed out 1",
      "[Denied 1]",
      "[Unknown 0]",
      SLOW,
    ]);
    expect(await click(/^Denied/)).toEqual({ status: "denied" });
    expect(await click(/^All/)).toEqual({});
  });

  test("single kind of failure has no combined choice, unless it is selected", () => {
    const few = counts.slice(0, 2);
    expect(show({ status: "error" }, few).chips).toEqual(["All 9", "Done 5", "[Failed 2]", SLOW]);
    cleanup();
    const failed = show({ status: "error,timed_out,unknown" }, few);
    expect(failed.chips).toEqual(["All 9", "[Any failure 2]", "Done 5", "[Failed 2]", SLOW]);
  });
});

test.each([
  ['{"city":"Paris","days":7}', 'city: "Paris", days: 7'],
  ["{}", ""],
  ['{"city":"Par', '{"city":"Par'],
  ["[1]", "[1]"],
])("arguments %s are shown in a line as %s", (text, line) => {
  expect(argumentsLine(text)).toBe(line);
});

test.each([
  ["en", NOW, "14:02:11"],
  ["zh-CN", NOW, "14:02:11"],
  ["en", NOW - 24 * HOUR_MS, "Nov 21, 14:02"],
  ["zh-CN", NOW - 24 * HOUR_MS, "11月21日 14:02"],
])("in %s, a call at %i shows the time %s", (language, at, text) => {
  expect(moment(at, NOW, language)).toBe(text);
});

test.each([
  ["preparing", null, "Preparing", "准备中"],
  ["queued", null, "Queued", "排队中"],
  ["success", null, "Done", "已完成"],
  ["error", "failed: no such city", "Failed", "失败"],
  ["not_started", "invalid_arguments: /city: must be given", "Invalid arguments", "参数无效"],
  ["not_started", "unknown_tool", "Unknown tool", "未知工具"],
  ["not_started", "stopped", "Not started", "未开始"],
  ["of_a_later_release", null, "Unknown", "未知"],
])("call with status %s and error %s is labelled %s, %s", (status, error, ...text) => {
  const spoken = [en, zh].map((words) => {
    language.set(words === zh ? "zh-CN" : "en");
    const { result } = renderHook(useHistoryWords);
    return stateWord(stateOf(status, words, error), words, result.current);
  });
  expect(spoken).toEqual(text);
});

test("exported file is named after its time", () => {
  expect(fileName("csv", NOW)).toBe("throughline-calls-20261122-140211.csv");
});

describe("waterfall", () => {
  const kinds = fc.constantFrom("first_token", "text", "tool", "engine");
  const segments = fc.array(
    fc.record(
      {
        kind: kinds,
        ms: fc.nat(5_000),
        start: fc.nat(),
        tool_id: fc.constantFrom("a", "b"),
      },
      { requiredKeys: ["kind", "ms", "start"] },
    ),
  );

  test("parts are consecutive and as long as the turn", () => {
    fc.assert(
      fc.property(segments, (segments) => {
        const parts = partsOf(segments);
        let end = 0;
        for (const part of parts) {
          expect(part.offset).toBe(end);
          end += part.ms;
        }
        expect(sumOf(parts)).toBe(segments.reduce((sum, { ms }) => sum + ms, 0));
      }),
    );
  });

  test("waterfall is a readable table", () => {
    const waterfall: WaterfallInfo = {
      status: "completed",
      wall_ms: 1_300,
      saved_by_eager_ms: 0,
      segments: [
        { kind: "first_token", start: 0, ms: 100 },
        { kind: "tool", start: 100, ms: 500, tool_id: "t.1" },
        { kind: "tool", start: 600, ms: 300, tool_id: "t.2" },
        { kind: "text", start: 900, ms: 150 },
        { kind: "text", start: 1_050, ms: 250 },
      ],
    };
    render(<Waterfall waterfall={waterfall} nameOf={(id) => `name of ${id}`} current="t.2" />);
    const rows = within(screen.getByRole("table", { name: "Turn time breakdown" })).getAllByRole("row");
    expect(rows.map((row) => row.textContent)).toEqual([
      "PhaseDuration",
      "Time to first token100 ms",
      "Toolname of t.1500 ms",
      "Toolname of t.2300 ms",
      "Text400 ms",
      "Total1,300 ms",
    ]);
  });
});
