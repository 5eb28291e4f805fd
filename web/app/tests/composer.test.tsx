import { act, renderHook } from "@testing-library/react";
import type { AgentInfo, ModelEntry, ToolInfo } from "@throughline/client";
import { Throughline } from "@throughline/client";
import type { ReactNode } from "react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addressed, agentsFor, commandsFor, isOpening } from "../src/chat/composer/commands.ts";
import { DRAFT_CHARS_MAX, DRAFTS_KEY, DRAFTS_MAX, draftOf, keepDraft } from "../src/chat/composer/drafts.ts";
import { model } from "../src/chat/composer/mode.ts";
import { DISCOVERY_MS, useOffer } from "../src/chat/composer/offer.ts";
import { fitting, SUGGESTIONS } from "../src/chat/first/fitting.ts";
import { found, rowsOf, short } from "../src/chat/picker/model.ts";
import { recentModels, rememberModel } from "../src/chat/picker/recent.ts";
import { ClientProvider } from "../src/session/context.tsx";

const agent = (name: string, model = "one/alpha"): AgentInfo => ({
  name,
  model,
  mode: "auto",
  origin: "file",
  read_only: true,
  tools_enabled: true,
  is_default: name === "default",
});

beforeEach(() => localStorage.clear());

describe("commands", () => {
  test.each([
    ["/", true],
    ["/new", true],
    ["@careful", true],
    ["/new one", false],
    ["a / b", false],
    ["", false],
  ])("%o begins a command: %s", (text, is) => expect(isOpening(text)).toBe(is));

  test("commands about an answer are listed once there is one", () => {
    expect(commandsFor("/", false)).not.toContain("retry");
    expect(commandsFor("/", true)).toContain("retry");
    expect(commandsFor("/RE", true)).toEqual(["retry"]);
    expect(commandsFor("/usr", true)).toEqual([]);
  });

  test.each([
    ["@careful How are you?", "careful", "How are you?"],
    ["@careful\nTwo\nlines", "careful", "Two\nlines"],
    ["@nobody How are you?", undefined, "@nobody How are you?"],
    ["@careful", undefined, "@careful"],
    ["@careful  ", undefined, "@careful  "],
    ["Ask @careful about it", undefined, "Ask @careful about it"],
  ])("%o is addressed to %s", (text, name, rest) => {
    expect(addressed(text, [agent("default"), agent("careful")])).toEqual({ agent: name, text: rest });
  });

  test("agents are found by any part of their names", () => {
    expect(agentsFor("@FUL", [agent("default"), agent("careful")]).map(({ name }) => name)).toEqual([
      "careful",
    ]);
  });
});

describe("drafts", () => {
  test("each conversation has its own draft, and an empty one is not stored", () => {
    keepDraft(undefined, "new");
    keepDraft("a", "of a");
    expect([draftOf(undefined), draftOf("a"), draftOf("b")]).toEqual(["new", "of a", ""]);
    keepDraft("a", "  ");
    expect(localStorage.getItem(DRAFTS_KEY)).toBe('{"new":"new"}');
  });

  test("oldest drafts are dropped, and a long document is not stored", () => {
    for (let n = 0; n <= DRAFTS_MAX; n += 1) keepDraft(`c${n}`, "x");
    expect([draftOf("c0"), draftOf("c1"), draftOf(`c${DRAFTS_MAX}`)]).toEqual(["", "x", "x"]);
    keepDraft("c1", "x".repeat(DRAFT_CHARS_MAX + 1));
    expect(draftOf("c1")).toBe("");
  });

  test("malformed storage is ignored", () => {
    for (const stored of ["null", "[", "7", '{"a":7}']) {
      localStorage.setItem(DRAFTS_KEY, stored);
      expect(draftOf("a")).toBe("");
      keepDraft("a", "again");
      expect(draftOf("a")).toBe("again");
    }
  });
});

describe("model picker", () => {
  const entry = (id: string, owned_by: string): ModelEntry => ({ id, owned_by, object: "model", created: 0 });

  test("recently used models come first, then agents if there are several", () => {
    const entries = [
      entry("default", "throughline"),
      entry("a/1", "a"),
      entry("b/2", "b"),
      entry("c/3", "c"),
    ];
    const agents = [agent("default"), agent("other", "b/2")];
    const rows = rowsOf(entries, agents, ["c/3", "b/2", "gone/0"]);
    expect(rows.map(({ id }) => id)).toEqual(["c/3", "b/2", "a/1", "default", "other"]);
    expect(rows.filter(({ isLastUsed }) => isLastUsed).map(({ id }) => id)).toEqual(["c/3"]);
    expect(rowsOf(entries, [agent("default")], []).every(({ kind }) => kind === "model")).toBe(true);
    expect(found(rows, " B/ 2").map(({ id }) => id)).toEqual(["b/2", "other"]);
  });

  test.each([
    [4_096, "4k"],
    [128_000, "128k"],
    [131_072, "128k"],
    [200_000, "200k"],
    [1_048_576, "1M"],
  ])("%i tokens are written as %s", (tokens, text) => expect(short(tokens)).toBe(text));

  test("five recent models are remembered without duplicates", () => {
    for (const id of ["a", "b", "c", "d", "e", "f", "c"]) rememberModel(id);
    expect(recentModels()).toEqual(["c", "f", "e", "d", "b"]);
  });
});

describe("suggestions", () => {
  const tool = (name: string, offered = true): ToolInfo => ({ name, offered }) as ToolInfo;

  test.each<[string, ToolInfo[], string[]]>([
    ["no tools", [], ["diagram", "formula", "clock", "trip"]],
    ["files", [tool("files.read"), tool("files.list")], ["files", "diagram", "formula", "clock"]],
    ["one that is not offered", [tool("web.search", false)], ["diagram", "formula", "clock", "trip"]],
    ["tools of somebody", [tool("mcp_jira.search")], ["abilities", "diagram", "formula", "clock"]],
    [
      "many",
      [tool("time.now"), tool("web.search"), tool("files.list"), tool("live2d.motion")],
      ["search", "files", "days", "diagram"],
    ],
  ])("four suggestions fit: %s", (_, tools, expected) =>
    expect(fitting("one/alpha", tools)).toEqual(expected),
  );

  test("demo model gets suggestions that it can answer", () => {
    expect(fitting("demo", [])).toHaveLength(SUGGESTIONS);
    expect(fitting("demo", [])).toContain("weather");
  });
});

describe("tools and tokens of the composer", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A server whose sources are discovered one after another. */
  function server() {
    const there = { tools: 1, requests: 0, hasModel: true };
    const fetch: typeof globalThis.fetch = async (input) => {
      const { pathname } = new URL(String(input), "http://here");
      if (pathname.startsWith("/v1/models/")) {
        return there.hasModel
          ? Response.json({})
          : Response.json({ error: { code: "not_found", message: "gone" } }, { status: 404 });
      }
      if (pathname === "/v1/agents") return Response.json({ items: [agent("default")] });
      there.requests += 1;
      return Response.json({ tokens: { total: 10 * there.tools, sources: [{ tools: there.tools }] } });
    };
    const client = new Throughline({ baseUrl: "http://here", fetch });
    const wrapper = ({ children }: { children: ReactNode }) => (
      <ClientProvider value={client}>{children}</ClientProvider>
    );
    return { there, wrapper };
  }
  const pass = async (ms: number): Promise<void> =>
    await act(async () => {
      await vi.advanceTimersByTimeAsync(ms);
    });

  test("tools are loaded again during discovery and when a turn begins", async () => {
    const { there, wrapper } = server();
    const { result, rerender } = renderHook(({ turn }: { turn: string | undefined }) => useOffer(turn), {
      wrapper,
      initialProps: { turn: undefined as string | undefined },
    });
    await pass(0);
    expect(result.current).toMatchObject({ agent: "default", model: "one/alpha", tools: 1, tokens: 10 });
    there.tools = 13;
    await pass(DISCOVERY_MS[0] ?? 0);
    expect(result.current?.tools).toBe(13);
    for (const ms of DISCOVERY_MS) await pass(ms);
    await pass(600_000);
    expect(there.requests, "it ends").toBe(1 + DISCOVERY_MS.length);
    there.tools = 14;
    rerender({ turn: "turn_1" });
    await pass(0);
    expect(result.current?.tools).toBe(14);
  });

  test("unavailable model is deselected", async () => {
    const { there, wrapper } = server();
    there.hasModel = false;
    model.set("one/gone");
    renderHook(() => useOffer(undefined), { wrapper });
    await pass(0);
    expect(model.get()).toBe("");
  });
});
