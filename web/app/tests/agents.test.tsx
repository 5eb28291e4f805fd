import { render, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { type AgentField, type AgentSettings, Throughline } from "@throughline/client";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { draftOf, isAt, isChanged, settingsOf, valueAt } from "../src/agents/model/form.ts";
import { numberOf, ruleDraft, ruleOf, strayTests } from "../src/agents/model/rules.ts";
import { textRuleDraft, textRuleOf, unfinished, withTarget } from "../src/agents/model/text-rules.ts";
import AgentsView from "../src/agents/view.tsx";
import { language } from "../src/preferences.ts";
import { ClientProvider } from "../src/session/context.tsx";
import { go } from "../src/shared/router.ts";

const FIELDS: readonly AgentField[] = [
  { path: "model", kind: "model", label: "Model", help: "Which." },
  { path: "fallback", kind: "lines", label: "Fallback", help: "Then which." },
  { path: "mode", kind: "choice", choices: ["auto", "text"], label: "Mode", help: "How." },
  { path: "temperature", kind: "number", label: "Temperature", help: "How warm." },
  { path: "extra", kind: "json", label: "Extra", help: "More." },
  { path: "prompt", kind: "text", label: "System prompt", help: "What it is told." },
  { path: "tool_call.enabled", kind: "switch", default: false, label: "Use tools", help: "Whether." },
  { path: "tool_call.max_iterations", kind: "number", default: 5, label: "Rounds", help: "How many." },
  { path: "guard.stop_after", kind: "number", default: 2, label: "Stop", help: "When." },
  {
    path: "limits.asked_ms_max",
    kind: "number",
    default: 90_000,
    unit: "ms",
    label: "Time",
    help: "So long.",
  },
];

/** Settings as the server sends them: every field with its default. */
function settings(more: Partial<AgentSettings> = {}): AgentSettings {
  return {
    model: "mine/m",
    fallback: [],
    mode: "auto",
    prompt: null,
    temperature: null,
    max_output_tokens: null,
    extra: {},
    tool_call: {
      enabled: true,
      mode: "auto",
      tool_toggles: {},
      default_tool_enabled: true,
      max_iterations: 5,
      timeout_ms: 30_000,
      require_confirmation: false,
      parallel_execution: false,
      protocol: "vcp",
      start: "eager",
      results: "user",
    },
    policy: [],
    guard: { note_after: 1, ask_after: 1, stop_after: 2, period_max: 4 },
    steering: "next_step",
    limits: {},
    ...more,
  };
}

/** Settings after this input. */
function typed(path: string, value: string | boolean, before = settings()): AgentSettings {
  const draft = draftOf(FIELDS, before);
  return settingsOf(FIELDS, before, { ...draft, fields: { ...draft.fields, [path]: value } });
}

describe("agent settings form", () => {
  test("untouched fields keep any setting unchanged", () => {
    const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
    const given = fc.record({
      prompt: fc.option(fc.string()),
      temperature: fc.option(fc.double({ min: 0, max: 2, noNaN: true })),
      fallback: fc.array(fc.stringMatching(/^[a-z]+\/[a-z0-9.-]+$/)),
      extra: fc.dictionary(fc.string(), value),
      limits: fc.dictionary(fc.constantFrom("asked_ms_max", "of_a_later_release"), fc.nat()),
    });
    fc.assert(
      fc.property(given, (given) => {
        const before = settings(given as Partial<AgentSettings>);
        expect(isChanged(FIELDS, before, draftOf(FIELDS, before))).toBe(false);
        // Kept although of a later release.
        expect(settingsOf(FIELDS, before, draftOf(FIELDS, before)).limits).toEqual(given.limits);
      }),
    );
  });

  test.each([
    ["temperature", "0.5", 0.5],
    ["temperature", " 1 ", 1],
    ["temperature", "", undefined],
    ["temperature", "warm", "warm"],
    ["limits.asked_ms_max", "3", 3],
    ["fallback", " a/b \n\nc/d", ["a/b", "c/d"]],
    ["extra", '{"top_p": 0.9}', { top_p: 0.9 }],
    ["extra", '{"top_p"', '{"top_p"'],
    ["model", "", ""],
    ["prompt", "", undefined],
    ["tool_call.enabled", false, false],
    ["tool_call.max_iterations", "", undefined],
  ])("%s typed as %o becomes %o", (path, text, value) => {
    expect(valueAt(typed(path, text), path)).toEqual(value);
  });

  test("empty section is left out", () => {
    const { guard: _, ...silent } = settings();
    expect(settingsOf(FIELDS, silent, draftOf(FIELDS, silent)).guard).toBeUndefined();
  });

  test.each([
    ["settings.tool_call.max_iterations", "tool_call.max_iterations", true],
    ["settings.fallback[1]", "fallback", true],
    ["settings.extra.a.b", "extra", true],
    ["settings.policy[1].decide", "policy[1]", true],
    ["settings.policy[10].decide", "policy[1]", false],
    ["settings.mode", "model", false],
    ["settings", "model", false],
    [undefined, "model", false],
  ])("error at %s is shown at %s: %s", (param, path, is) => {
    expect(isAt(param, path)).toBe(is);
  });
});

describe("text rule drafts", () => {
  test("any rule survives a round trip", () => {
    const rule = fc.record(
      {
        name: fc.string({ minLength: 1 }),
        pattern: fc.string(),
        replace: fc.string(),
        in: fc.constantFrom("shown", "model"),
        target_roles: fc.subarray(["assistant", "tool", "user"], { minLength: 1 }),
        enabled: fc.constant(false),
      },
      { requiredKeys: ["pattern", "replace", "in", "target_roles"] },
    );
    fc.assert(
      fc.property(rule, (rule) => {
        expect(textRuleOf(textRuleDraft(rule))).toEqual(rule);
      }),
    );
    const hiding = { pattern: "x", hide: true, in: "shown", target_roles: ["tool"] };
    expect(textRuleOf(textRuleDraft(hiding))).toEqual(hiding);
  });

  test("display rules never target user messages", () => {
    const draft = textRuleDraft({ pattern: "x", replace: "", in: "model", target_roles: ["user"] });
    expect(withTarget(draft, "shown").roles).toEqual(["assistant"]);
    expect(withTarget(draft, "model").roles).toEqual(["user"]);
  });

  test("unfinished rule is skipped in previews and keeps its position", () => {
    const rules = ["a", "", "b"].map((pattern) => ({ pattern, replace: "", in: "shown" }));
    const { text_rules } = unfinished(settings({ text_rules: rules }));
    expect(text_rules?.map(({ pattern, enabled }) => [pattern, enabled !== false])).toEqual([
      ["a", true],
      [".", false],
      ["b", true],
    ]);
  });
});

describe("approval rule drafts", () => {
  test("any rule survives a round trip", () => {
    const word = fc.stringMatching(/^[a-z*_.]{1,8}$/);
    const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
    const patterns = fc.oneof(word, fc.array(word, { minLength: 2, maxLength: 3 }));
    const how = fc.oneof(
      fc.record({ equals: fc.oneof(scalar, fc.array(scalar), fc.dictionary(fc.string(), scalar)) }),
      fc.record({ one_of: fc.array(scalar, { minLength: 1 }) }),
      fc.record({ under: fc.string() }),
      fc.record({ glob: fc.string() }),
    );
    const rule = fc.record(
      {
        decide: fc.constantFrom("allow", "ask", "deny"),
        tool: patterns,
        source: patterns,
        effect: fc.subarray(["read", "write"], { minLength: 1 }),
        arguments: fc.dictionary(fc.string({ minLength: 1 }), how, { minKeys: 1 }),
        reason: fc.string({ minLength: 1 }),
      },
      { requiredKeys: ["decide"] },
    );
    fc.assert(
      fc.property(rule, (rule) => {
        expect(JSON.parse(JSON.stringify(ruleOf(ruleDraft(rule))))).toEqual(JSON.parse(JSON.stringify(rule)));
      }),
    );
  });

  test("list is separated by Latin or Chinese commas", () => {
    const rule = { ...ruleDraft({ decide: "deny" }), tool: " rm，dd , " };
    const test = { which: "n", test: "one_of", value: "1, two" };
    expect(ruleOf({ ...rule, tests: [test] })).toMatchObject({
      tool: ["rm", "dd"],
      arguments: { n: { one_of: [1, "two"] } },
    });
  });

  test("condition without an argument or with a repeated one is reported", () => {
    const test = (which: string) => ({ which, test: "equals", value: "1" });
    const tests = [test("a"), test(""), test("a"), test("b")];
    expect([...strayTests({ ...ruleDraft({}), tests })]).toEqual([tests[1], tests[2]]);
  });

  test.each([
    ["rule:12 allow files", 12],
    ["effect:write", undefined],
    [null, undefined],
  ])("%s refers to rule %s", (rule, number) => {
    expect(numberOf(rule)).toBe(number);
  });
});

/** A server with a configured and a custom agent; previews wait for `mayPreview`. */
function server(mayPreview = Promise.resolve()) {
  const agents = new Map([["mine", { settings: settings({ prompt: "Be brief." }), version: 1 }]]);
  const requests: { what: string; body: { settings: AgentSettings; version?: number; name?: string } }[] = [];
  const refuse = (status: number, error: object): Response => Response.json({ error }, { status });
  const info = (name: string) => {
    const own = agents.get(name);
    return own === undefined
      ? {
          name,
          origin: "file",
          read_only: true,
          is_default: true,
          mode: "auto",
          tools_enabled: true,
          model: "mine/m",
        }
      : {
          name,
          origin: "stored",
          read_only: false,
          is_default: false,
          mode: "auto",
          tools_enabled: true,
          version: own.version,
        };
  };
  const detail = (name: string) => ({
    ...info(name),
    settings: agents.get(name)?.settings ?? settings({ prompt: "Of the file." }),
  });
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input, init) => {
      const { pathname } = new URL(String(input));
      const [, name = "", more] = /^\/v1\/agents\/([^/]+)(\/.*)?$/.exec(pathname) ?? [];
      const method = init?.method ?? "GET";
      const body = JSON.parse(String(init?.body ?? "{}"));
      if (method !== "GET") requests.push({ what: `${method} ${pathname}`, body });
      if (pathname === "/v1/agent-fields")
        return Response.json({ parts: [{ name: "tools", label: "All of it", fields: FIELDS }] });
      if (pathname === "/v1/upstreams") return Response.json({ items: [] });
      if (pathname === "/v1/agents" && method === "GET")
        return Response.json({ items: ["default", ...agents.keys()].map(info) });
      if (more === "/preview") {
        await mayPreview;
        if (body.settings.model === "no")
          return refuse(400, {
            code: "invalid_agent",
            message: "`no` is not `upstream/model`",
            param: "settings.model",
          });
        const way = { agent: name, mode: "native", prompt: `Told: ${body.settings.prompt}`, tools_text: "" };
        const tokens = { total: 9, prompt: 9, sources: [], counting: "exact" };
        return Response.json({
          settings: body.settings,
          prompts: [{ ...way, tools: [], left_out: [], unmatched: [], tokens }],
          tools: { tools: [], sources: [], unknown_toggles: [] },
        });
      }
      if (more === "/duplicate" || (pathname === "/v1/agents" && method === "POST")) {
        if (agents.has(body.name))
          return refuse(409, { code: "name_taken", message: "there is one", param: "name" });
        agents.set(body.name, { settings: body.settings ?? detail(name).settings, version: 1 });
        return Response.json(detail(body.name), { status: 201 });
      }
      if (method === "PUT") {
        const there = agents.get(name);
        if (there === undefined) return refuse(404, { code: "not_found", message: "gone" });
        if (body.version !== there.version)
          return refuse(409, { code: "changed_meanwhile", message: "changed", version: there.version });
        if (body.settings.temperature === "warm")
          return refuse(400, {
            code: "invalid_agent",
            message: "expected a number",
            param: "settings.temperature",
          });
        agents.set(name, { settings: body.settings, version: there.version + 1 });
      }
      if (method === "DELETE") {
        agents.delete(name);
        return new Response(null, { status: 204 });
      }
      return Response.json(detail(name));
    },
  });
  const saves = () => requests.filter(({ what }) => what.startsWith("PUT"));
  return { client, agents, requests, saves };
}

function open(name: string, client: Throughline): void {
  go(`/agents?agent=${name}`);
  render(
    <ClientProvider value={client}>
      <AgentsView />
    </ClientProvider>,
  );
}

/** The view of an agent. */
async function at(name: string, { client }: { client: Throughline }) {
  open(name, client);
  await screen.findByRole("heading", { name, level: 2 });
}

describe("agents view", () => {
  beforeEach(() => {
    language.set("en");
    // jsdom has no dialogs.
    HTMLDialogElement.prototype.showModal = function () {
      this.open = true;
    };
    HTMLDialogElement.prototype.close = function () {
      this.open = false;
      this.dispatchEvent(new Event("close"));
    };
  });

  test("typing updates the preview at once, Ctrl+S saves", async () => {
    const there = server();
    await at("mine", there);
    await userEvent.type(screen.getByLabelText("System prompt"), " Always.");
    await screen.findByText("Told: Be brief. Always.");
    expect(screen.getByText("Unsaved changes")).toBeInTheDocument();
    expect(there.saves()).toEqual([]);
    await userEvent.keyboard("{Control>}s{/Control}");
    await screen.findByText(/Applies to new turns/);
    expect(there.agents.get("mine")).toMatchObject({ version: 2, settings: { prompt: "Be brief. Always." } });
    expect(there.saves()[0]?.body.version).toBe(1);
  });

  test("form waits for the tools, so that nothing moves", async () => {
    let preview = (): void => undefined;
    const { client, requests } = server(
      new Promise((resolve) => {
        preview = resolve;
      }),
    );
    open("mine", client);
    await waitFor(() => expect(requests).toHaveLength(1));
    expect(screen.queryByRole("heading", { level: 2 })).toBeNull();
    expect(screen.queryByRole("button", { name: "Add a rule" })).toBeNull();
    preview();
    await screen.findByRole("button", { name: "Add a rule" });
  });

  test("refused field shows the error, and the typed text stays", async () => {
    const there = server();
    await at("mine", there);
    const field = screen.getByLabelText("Temperature");
    await userEvent.type(field, "warm");
    await userEvent.click(screen.getByRole("button", { name: /^Save/ }));
    await waitFor(() => expect(field).toHaveFocus());
    expect(field).toBeInvalid();
    expect(field).toHaveAccessibleDescription(/expected a number/);
    expect(field).toHaveValue("warm");
    await userEvent.clear(field);
    await userEvent.type(field, "1");
    await userEvent.click(screen.getByRole("button", { name: /^Save/ }));
    await screen.findByText(/Applies to new turns/);
    // Before anything is saved, too.
    const model = screen.getByRole("combobox", { name: "Model" });
    await userEvent.clear(model);
    await userEvent.type(model, "no");
    await waitFor(() => expect(model).toBeInvalid());
  });

  test("conflicting change offers to keep either version", async () => {
    const there = server();
    await at("mine", there);
    const elsewhere = (prompt: string, version: number) =>
      there.agents.set("mine", { settings: settings({ prompt }), version });
    const prompt = () => screen.getByLabelText("System prompt");
    elsewhere("Theirs.", 2);
    await userEvent.type(prompt(), "!");
    await userEvent.click(screen.getByRole("button", { name: /^Save/ }));
    await userEvent.click(await screen.findByRole("button", { name: "Use the saved version" }));
    await waitFor(() => expect(prompt()).toHaveValue("Theirs."));
    elsewhere("Theirs again.", 3);
    await userEvent.type(prompt(), "?");
    await userEvent.click(screen.getByRole("button", { name: /^Save/ }));
    await userEvent.click(await screen.findByRole("button", { name: "Overwrite with mine" }));
    await screen.findByText(/Applies to new turns/);
    expect(there.agents.get("mine")).toMatchObject({ version: 4, settings: { prompt: "Theirs.?" } });
    // Deleted by another user: it is created again.
    there.agents.clear();
    await userEvent.type(prompt(), "!");
    await userEvent.click(screen.getByRole("button", { name: /^Save/ }));
    await userEvent.click(await screen.findByRole("button", { name: "Overwrite with mine" }));
    await screen.findByText(/Applies to new turns/);
    expect(there.agents.get("mine")?.settings.prompt).toBe("Theirs.?!");
  });

  test("leaving with unsaved changes asks first", async () => {
    const there = server();
    await at("mine", there);
    await userEvent.type(screen.getByLabelText("System prompt"), " Yes.");
    await userEvent.click(screen.getByRole("link", { name: /default/ }));
    const dialog = within(await screen.findByRole("dialog"));
    expect(location.search).toBe("?agent=mine");
    await userEvent.click(dialog.getByRole("button", { name: "Keep editing" }));
    expect(screen.getByLabelText("System prompt")).toHaveValue("Be brief. Yes.");
    await userEvent.click(screen.getByRole("link", { name: /default/ }));
    await userEvent.click(within(screen.getByRole("dialog")).getByRole("button", { name: "Save" }));
    await screen.findByRole("heading", { name: "default", level: 2 });
    expect(there.agents.get("mine")?.settings.prompt).toBe("Be brief. Yes.");

    go("/agents?agent=mine");
    await screen.findByRole("heading", { name: "mine", level: 2 });
    await userEvent.type(screen.getByLabelText("System prompt"), " No.");
    history.back();
    await userEvent.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Discard" }));
    await screen.findByRole("heading", { name: "default", level: 2 });
    expect(there.agents.get("mine")?.settings.prompt).toBe("Be brief. Yes.");
  });

  test("configured agent is read-only and can be copied; a taken name can be corrected", async () => {
    const there = server();
    await at("default", there);
    expect(screen.queryByRole("textbox", { name: "System prompt" })).toBeNull();
    expect(screen.getByText("System prompt", { exact: false, selector: "dt" })).toBeVisible();
    expect(screen.queryByRole("button", { name: "Delete" })).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Duplicate to edit" }));
    const name = screen.getByLabelText("Name");
    await userEvent.clear(name);
    await userEvent.type(name, "mine{Enter}");
    await waitFor(() => expect(name).toBeInvalid());
    await userEvent.type(name, "-too{Enter}");
    await screen.findByRole("heading", { name: "mine-too", level: 2 });
    expect(screen.getByLabelText("System prompt")).toBeEnabled();
    expect(screen.getByLabelText("System prompt")).toHaveValue("Of the file.");
  });

  test("agent is created, and deleted after a confirmation", async () => {
    const there = server();
    await at("default", there);
    await userEvent.click(screen.getByRole("button", { name: "New agent" }));
    await userEvent.type(screen.getByLabelText("Name"), "fresh{Enter}");
    await screen.findByRole("heading", { name: "fresh", level: 2 });
    expect(there.agents.get("fresh")?.settings).toMatchObject({ model: "mine/m" });
    await userEvent.click(screen.getByRole("button", { name: "Delete" }));
    expect(there.agents.has("fresh")).toBe(true);
    await userEvent.click(screen.getByRole("button", { name: "Confirm delete" }));
    await screen.findByRole("heading", { name: "default", level: 2 });
    expect(there.agents.has("fresh")).toBe(false);
  });

  test("moving a rule by keyboard keeps the focus", async () => {
    const there = server();
    there.agents.set("mine", {
      settings: settings({
        policy: [
          { decide: "deny", tool: "a" },
          { decide: "allow", tool: "b" },
        ],
      }),
      version: 1,
    });
    await at("mine", there);
    screen.getByRole("button", { name: "Move down: Rule 1" }).focus();
    await userEvent.keyboard("{Enter}");
    // At the end only moving up is left.
    expect(screen.getByRole("button", { name: "Move up: Rule 2" })).toHaveFocus();
    await userEvent.click(screen.getByRole("button", { name: /^Save/ }));
    await screen.findByText(/Applies to new turns/);
    expect(there.agents.get("mine")?.settings.policy).toEqual([
      { decide: "allow", tool: "b" },
      { decide: "deny", tool: "a" },
    ]);
  });
});
