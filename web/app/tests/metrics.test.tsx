import { readFileSync } from "node:fs";
import { act, render, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type MetricsInfo, type ThresholdInfo, Throughline } from "@throughline/client";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Frames } from "../src/chat/model/frames.ts";
import { callsLocationOf, FAILED, isOfFailed } from "../src/history/model/filter.ts";
import { stateOf } from "../src/history/model/row.ts";
import { en } from "../src/i18n/en.ts";
import {
  addressOfRange,
  ask,
  callsOf,
  failedOf,
  percent,
  RANGES,
  type Range,
  rangeOf,
  rangeWithData,
  rounded,
} from "../src/metrics/model.ts";
import MetricsView from "../src/metrics/view.tsx";
import { frames as kept, language } from "../src/preferences.ts";
import { ClientProvider } from "../src/session/context.tsx";
import { toneOf } from "../src/shared/call-card/tone.ts";
import { Lines } from "../src/shared/charts/lines.tsx";
import { go } from "../src/shared/router.ts";

const NOW = new Date(2026, 10, 22, 14, 2, 11).getTime();
const DAY = RANGES[1] as Range;

beforeEach(() => language.set("en"));

const none = { count: 0 };
const turns = {
  total: 2,
  input_tokens: 12_400,
  output_tokens: 80,
  first_token_ms: { count: 2, p50: 212, p95: 1_400 },
  tokens_per_second: none,
  rated_up: 0,
  rated_down: 0,
};
const calls = {
  total: 4,
  finished: 3,
  failed: 1,
  error_rate: 1 / 3,
  duration_ms: { count: 3, p50: 684, p95: 30_000 },
};
const quiet = {
  turns: {
    total: 0,
    input_tokens: 0,
    output_tokens: 0,
    first_token_ms: none,
    tokens_per_second: none,
    rated_up: 0,
    rated_down: 0,
  },
  calls: { total: 0, finished: 0, failed: 0, duration_ms: none },
};
const METRICS: MetricsInfo = {
  from: NOW - 86_400_000,
  until: NOW,
  bucket_ms: DAY.partMs,
  approvals_waiting: 1,
  turns,
  turns_by_status: [{ name: "completed", count: 2 }],
  calls,
  calls_by_status: [
    { name: "success", count: 2 },
    { name: "timed_out", count: 1 },
    { name: "denied", count: 1 },
  ],
  tools: [{ tool_name: "demo.weather", ...calls }],
  tools_left_out: 0,
  models: [{ name: "demo/one", failed: 1, ...turns }],
  agents: [{ name: "default", failed: 1, ...turns }],
  errors: [{ name: "tool_failed", count: 1 }],
  conversations: [
    {
      conversation_id: "conv_1",
      title: "Weather",
      turns: 2,
      input_tokens: 12_400,
      output_tokens: 80,
      calls: 4,
      failed_calls: 1,
    },
  ],
  buckets: [
    { from: NOW - 86_400_000, turns, calls },
    { from: NOW - 43_200_000, ...quiet },
  ],
  samples_max: 20_000,
  turns_cut: false,
  calls_cut: false,
};

/** Thresholds of a server with slow tools. */
const THRESHOLDS: ThresholdInfo[] = [
  {
    name: "streaming_tool_detection_rate",
    side: "at_least",
    unit: "ratio",
    limit: 0.95,
    samples: 40,
    value: 0.9,
    holds: false,
    window_ms: 900_000,
  },
  {
    name: "streaming_tool_execution_latency_p95",
    side: "at_most",
    unit: "s",
    limit: 3,
    samples: 40,
    value: 2,
    holds: true,
    window_ms: 900_000,
  },
  {
    name: "streaming_rollback_count",
    side: "at_most",
    unit: "per_minute",
    limit: 10,
    samples: 2,
    value: 0.4,
    holds: true,
    window_ms: 300_000,
  },
];

/** `times`: start times of turns, newest first. */
function server(answer: () => Response, times: readonly number[] = [], isAdmin = true) {
  const requests: { url: URL; body: unknown }[] = [];
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input, init) => {
      const url = new URL(String(input));
      requests.push({ url, body: init?.body && JSON.parse(String(init.body)) });
      if (url.pathname === "/v1/history/turns") {
        const found = times.find((at) => at < Number(url.searchParams.get("until")));
        return Response.json({ items: found === undefined ? [] : [{ started_at: found }] });
      }
      if (url.pathname !== "/v1/metrics/thresholds") return answer();
      return isAdmin ? Response.json({ items: THRESHOLDS }) : new Response("{}", { status: 403 });
    },
  });
  return { requests, client };
}

describe("time range", () => {
  test("range comes from the address, and links to its calls", () => {
    for (const range of RANGES) {
      expect(rangeOf(addressOfRange(range).replace(/^[^?]*/, ""))).toBe(range);
      expect(callsOf(range)).toBe(`/history/calls?since=${range.span}`);
    }
    expect(rangeOf("?range=1999")).toBeUndefined();
    expect(callsOf(DAY, { tool: "a b", slow: "1" })).toBe("/history/calls?tool=a+b&slow=1&since=day");
  });

  test("range ends after now, and its parts are aligned", async () => {
    const { requests, client } = server(() => Response.json(METRICS));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...RANGES), fc.nat(1e13), async (range, now) => {
        requests.length = 0;
        await ask(client, range, now, new AbortController().signal);
        const [from, until, buckets] = ["from", "until", "buckets"].map((name) =>
          Number(requests[0]?.url.searchParams.get(name)),
        );
        expect(until).toBeGreaterThan(now);
        expect((until ?? 0) - range.partMs).toBeLessThanOrEqual(now);
        expect((until ?? 0) % range.partMs).toBe(0);
        expect((until ?? 0) - (from ?? 0)).toBe(range.partMs * (buckets ?? 0));
      }),
      { numRuns: 30 },
    );
  });

  const HOUR_MS = 3_600_000;
  test.each([
    ["nothing at all", [], "day"],
    ["the first hour", [NOW - 60_000], "hour"],
    ["today and before", [NOW - 60_000, NOW - 5 * HOUR_MS], "day"],
    ["three days ago", [NOW - 72 * HOUR_MS], "week"],
    ["a year ago", [NOW - 8_760 * HOUR_MS], "month"],
  ] as const)("default range has data: %s", async (_, times, span) => {
    const { client } = server(() => Response.json(METRICS), times);
    expect((await rangeWithData(client, NOW, new AbortController().signal)).span).toBe(span);
  });

  test("failures include every failed status", () => {
    const { filter } = callsLocationOf(new URL(failedOf(DAY), "http://page").search);
    expect(filter).toEqual({ status: "error,timed_out,unknown", since: "day" });
    expect(isOfFailed(filter)).toBe(true);
  });

  test("failed statuses equal those of the API, with the same tone", () => {
    const { components } = JSON.parse(readFileSync("client/openapi.json", "utf8"));
    const { finished, failed } = components.schemas.CallsMetrics.properties;
    const namesIn = (text: string): string[] => [...text.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
    const [ended, good] = [finished, failed].map(({ description }) => namesIn(description));
    expect(FAILED).toEqual(ended?.filter((name) => !good?.includes(name)));
    const bad = Object.keys(en.callStatus).filter((name) => toneOf(stateOf(name, en).status) === "bad");
    expect(FAILED).toEqual(bad);
  });

  test("numbers are short", () => {
    expect([undefined, 0, 0.042, 1 / 3, 1].map(percent)).toEqual(["–", "0 %", "4.2 %", "33 %", "100 %"]);
    expect([9.44, 148.2].map(rounded)).toEqual(["9.4", "148"]);
  });
});

describe("metrics view", () => {
  const show = (answer: () => Response, isAdmin = true) =>
    render(
      <ClientProvider value={server(answer, [], isAdmin).client}>
        <MetricsView />
      </ClientProvider>,
    );

  test("each figure has a tile with a link to its calls", async () => {
    show(() => Response.json(METRICS));
    const tile = (name: string): HTMLElement => screen.getByRole("listitem", { name });
    await screen.findByRole("listitem", { name: "Time to first token" });
    expect(tile("Time to first token")).toHaveTextContent(/212 ms.*1\.4 s|p50.*212 ms/);
    expect(tile("Tokens per second")).toHaveTextContent("–");
    expect(tile("Error rate")).toHaveTextContent("33 %");
    expect(tile("Error rate")).toHaveTextContent("1 of 3 failed");
    const leads = (name: string): string | null =>
      within(tile(name)).getByRole("link", { name }).getAttribute("href");
    expect(leads("Tool duration")).toBe("/history/calls?slow=1&since=day");
    expect(leads("Error rate")).toBe("/history/calls?status=error%2Ctimed_out%2Cunknown&since=day");
    expect(leads("Waiting for you")).toBe("/history/calls?status=awaiting_approval");
    expect(screen.getByRole("link", { name: "demo.weather" })).toHaveAttribute(
      "href",
      "/history/calls?tool=demo.weather&since=day",
    );
  });

  test("tokens, models, errors and conversations are listed", async () => {
    show(() => Response.json(METRICS));
    const tokens = await screen.findByRole("listitem", { name: "Tokens" });
    expect(tokens).toHaveTextContent(/In.*12\.4 k.*Out.*80|12\.4 k/);
    const model = within(screen.getByRole("table", { name: "By model" }));
    expect(model.getByRole("link", { name: "demo/one" })).toHaveAttribute(
      "href",
      "/history?model=demo%2Fone&since=day",
    );
    expect(screen.getByRole("table", { name: "By agent" })).toHaveTextContent("default");
    const errors = within(screen.getByRole("table", { name: "Why calls failed" }));
    expect(errors.getByRole("link", { name: "tool_failed" })).toHaveAttribute(
      "href",
      "/history/calls?q=tool_failed&since=day",
    );
    const conversations = screen.getByRole("table", { name: "By conversation" });
    expect(
      within(conversations)
        .getAllByRole("cell")
        .map((cell) => cell.textContent),
    ).toEqual(["2", "12.4 k", "80", "4", "1"]);
  });

  test("crossed threshold is marked, and its limit drawn into the chart", async () => {
    show(() => Response.json(METRICS));
    const detection = await screen.findByRole("listitem", { name: "Calls detected" });
    expect(detection).toHaveAttribute("data-alarm", "true");
    expect(detection).toHaveTextContent("Alarm, limit: at least 95 %");
    expect(screen.getByRole("listitem", { name: "Changes of model or mode" })).toHaveAttribute(
      "data-alarm",
      "false",
    );
    const took = screen.getByRole("listitem", { name: "Tool duration" });
    expect(took).toHaveTextContent("p95 limit: at most 3.0 s");
    expect(took.querySelector(".limit")).toHaveAttribute("data-limit", "3000");
  });

  test("user without access to the whole server sees the rest", async () => {
    show(() => Response.json(METRICS), false);
    await screen.findByRole("listitem", { name: "Tokens" });
    expect(screen.queryByRole("listitem", { name: "Calls detected" })).toBeNull();
    expect(screen.queryByRole("alert")).toBeNull();
  });

  test("charts are also a table, without empty parts", async () => {
    show(() => Response.json(METRICS));
    await userEvent.click(await screen.findByText("Values over time", { selector: "summary" }));
    const table = screen.getByRole("table", { name: "Values over time" });
    expect(within(table).getAllByRole("row")).toHaveLength(2);
    expect(table).toHaveTextContent("684 ms");
  });

  test("limit of counted turns is mentioned", async () => {
    show(() => Response.json({ ...METRICS, calls_cut: true }));
    await screen.findByText(/newest 20,000 entries/);
  });

  test("error is shown with a retry", async () => {
    let isWell = false;
    show(() => (isWell ? Response.json(METRICS) : new Response("{}", { status: 500 })));
    await screen.findByRole("alert");
    isWell = true;
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    await screen.findByRole("listitem", { name: "Time to first token" });
    expect(screen.queryByRole("alert")).toBeNull();
  });

  test("figures of one range are never shown for another", async () => {
    show(() => Response.json(METRICS));
    await screen.findByRole("listitem", { name: "Time to first token" });
    act(() => go("/stats?range=hour"));
    expect(screen.queryByRole("listitem", { name: "Time to first token" })).toBeNull();
    act(() => go("/stats"));
    await screen.findByRole("listitem", { name: "Time to first token" });
  });
});

describe("charts", () => {
  test("known values are joined, and single ones marked", () => {
    const { container } = render(
      <Lines
        label="Errors"
        series={[
          [0, undefined, 10],
          [undefined, 5, undefined],
        ]}
        format={String}
        from="12:00"
        until="now"
      />,
    );
    expect(screen.getByRole("img", { name: "Errors" })).toBeInTheDocument();
    const paths = [...container.querySelectorAll("path")].map((path) => path.getAttribute("d"));
    expect(paths).toEqual(["M0 100L2 0", "M0 100h0M2 0h0", "", "M1 50h0"]);
    expect(container).toHaveTextContent("1012:00now");
  });

  test("chart without values is empty", () => {
    const { container } = render(<Lines label="x" series={[[]]} format={String} from="" until="" />);
    expect(container.querySelector("path")).toHaveAttribute("d", "");
  });
});

describe("frames", () => {
  let frames: FrameRequestCallback[] = [];
  let now = 1_000;
  beforeEach(() => {
    kept.set("0/0");
    frames = [];
    vi.spyOn(performance, "now").mockImplementation(() => now);
    vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
  });
  const after = (ms: number): void => {
    now += ms;
    for (const frame of frames.splice(0)) frame(now);
  };

  test("late frames of an answer are counted and reported at its end", () => {
    const { requests, client } = server(() => new Response(null, { status: 204 }));
    const watched = new Frames(client);
    watched.onText();
    for (const ms of [16, 16, 40, 16]) after(ms);
    watched.onText();
    expect(frames).toHaveLength(1);
    after(100);
    expect(requests).toEqual([]);
    watched.report();
    expect(requests.map(({ body }) => body)).toEqual([{ jank_frames: 2, window_ms: 188 }]);
    watched.report();
    expect(requests).toHaveLength(1);
    watched.onText();
    after(30);
    watched.report();
    expect(kept.get(), "the browser keeps the sum").toBe("3/218");
  });

  test("frames are not watched without events", () => {
    const { client } = server(() => new Response(null, { status: 204 }));
    const watched = new Frames(client);
    watched.onToolCall();
    after(16);
    after(600);
    expect(frames).toHaveLength(0);
    // Time between two events is not a late frame.
    now += 60_000;
    watched.onText();
    after(16);
    watched.report();
    expect(kept.get()).toBe("1/632");
  });

  test("frames of a long answer are reported during it", () => {
    const { requests, client } = server(() => new Response(null, { status: 204 }));
    const watched = new Frames(client);
    for (let at = 0; at < 3_800; at += 1) {
      watched.onText();
      after(16);
    }
    expect(requests.map(({ body }) => body)).toEqual([{ jank_frames: 0, window_ms: 60_016 }]);
  });
});
