// The dialog of models without a server: order of upstreams, keys that are sent once and never stored, custom addresses.

import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { ApiError, Throughline } from "@throughline/client";
import { describe, expect, test } from "vitest";
import {
  commandOf,
  NOTHING,
  nameOf,
  type UpstreamAddress,
  withV1Fallback,
} from "../src/connect/custom-upstream.ts";
import ModelsDialog from "../src/connect/dialog.tsx";
import { agentName, rowsOf, stateOf } from "../src/connect/state.ts";
import { answering } from "../src/preferences.ts";
import { ClientProvider } from "../src/session/context.tsx";

// jsdom has no modal dialogs.
HTMLDialogElement.prototype.showModal = function (): void {
  this.open = true;
};
HTMLDialogElement.prototype.close = function (): void {
  this.open = false;
};

const base = { address: "", connected: false, dialect: "openai-chat", note: "A note.", key: "missing" };
const far = { ...base, name: "far", title: "Far", key_url: "https://example.com/keys" };
const near = { ...base, name: "near", title: "Near", key: "not_needed", answers: true };
const away = { ...near, name: "away", title: "Away", answers: false };
const set = { ...base, name: "set", title: "Set", key: "present", key_from: "environment" };
const used = { ...base, name: "used", title: "Used", key: "present", key_from: "stored", connected: true };

test("usable upstreams come first", () => {
  const info = { dialect: "openai-chat", key: "present", key_from: "stored", models: [], model_facts: {} };
  const others = ["demo", "used", "work"].map((name) => ({ ...info, name, address: `http://${name}/v1` }));
  const sorted = rowsOf([away, far, set, near, used], others);
  expect(sorted.map((one) => [one.name, stateOf(one)])).toEqual([
    ["work", "connected"],
    ["used", "connected"],
    ["near", "here"],
    ["set", "environment"],
    ["far", "key"],
    ["away", "away"],
  ]);
});

test("agent gets the name of its model, unless the configuration has that name", () => {
  const agent = {
    name: "gpt-5",
    origin: "file",
    read_only: true,
    is_default: false,
    mode: "auto",
    tools_enabled: true,
  };
  expect(agentName("openai", "gpt-5-mini", [agent])).toBe("gpt-5-mini");
  expect(agentName("openrouter", "vendor/qwen3:8b free", [])).toBe("qwen3-8b-free");
  expect(agentName("openai", "gpt-5", [agent])).toBe("gpt-5-openai");
  expect(agentName("x", ".hidden", [])).toBe("-hidden");
});

const json = (body: unknown, status = 200): Response => Response.json(body, { status });
const refusal = (code: string, status: number, more: object = {}): Response =>
  json({ error: { code, type: "invalid_request_error", message: "No.", ...more } }, status);

interface Sent extends Partial<UpstreamAddress> {
  key?: string;
  model?: string;
  agent?: string;
}

/** The dialog with these upstreams and responses, and the requests to connect. */
function open(known: readonly object[], answer: (sent: Sent, name: string) => Response | undefined) {
  const sent: (Sent & { to: string })[] = [];
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input, init) => {
      const path = new URL(String(input)).pathname;
      if (path === "/v1/upstreams/known") return json({ items: known });
      if (init?.body === undefined) return json({ items: [] });
      const body: Sent = JSON.parse(String(init.body));
      const to = path.split("/").at(-2) ?? "";
      sent.push({ to, ...body });
      const models = ["m/one", "two", "known"];
      const model_facts = {
        known: { context_tokens: 1_047_576, output_tokens: 32_768, vision: true, tools: true, audio: false },
      };
      const agent = body.agent && { agent: body.agent };
      return answer(body, to) ?? json({ upstream: {}, models, model_facts, ...agent });
    },
  });
  render(
    <ClientProvider value={client}>
      <ModelsDialog close={() => undefined} />
    </ClientProvider>,
  );
  return { sent, user: userEvent.setup() };
}

test("wrong key is reported at its field; the right one lists models and is cleared", async () => {
  const { sent, user } = open([away, far], ({ key }) =>
    key === "wrong" ? refusal("wrong_key", 422, { why: "HTTP 401" }) : undefined,
  );
  await user.click(await screen.findByRole("button", { name: /Far/ }));
  const field = screen.getByLabelText("API key");
  await user.type(field, "wrong{Enter}");
  expect((await screen.findByRole("alert")).textContent).toContain("HTTP 401");
  await user.clear(field);
  await user.type(field, "right{Enter}");
  // Known properties of a model are next to its name.
  await screen.findByRole("button", { name: /known\s*1\.05M context · images · tools/ });
  await user.click(await screen.findByRole("button", { name: "m/one" }));
  await waitFor(() => expect(answering.get()).toBe("one"));
  expect(sent).toEqual([
    { to: "far", key: "wrong" },
    { to: "far", key: "right" },
    { to: "far", model: "m/one", agent: "one" },
  ]);
  expect(JSON.stringify({ ...localStorage })).not.toContain("right");
});

describe("custom upstream", () => {
  const at = (address: string) => ({ ...NOTHING, address });

  test.each([
    ["http://gpu-box:8000/v1", "gpu-box-8000"],
    [" https://llm.example.com/openai/v1", "llm.example.com"],
    ["http://10.0.0.5:9000", "10.0.0.5-9000"],
    ["http://localhost:1234/v1", "local-1234"],
    ["http://[::1]:8080", "local-8080"],
    ["http://[fd00::1]:8080", "fd00-1-8080"],
    ["http://", ""],
    ["", ""],
  ])("%s is named %s by default", (address, name) => {
    expect(nameOf(at(address))).toBe(name);
    expect(nameOf({ ...at(address), name: "work" })).toBe("work");
  });

  const listing = (answers: Readonly<Record<string, string>>) => {
    const tried: string[] = [];
    const ask = async ({ base_url }: UpstreamAddress): Promise<string> => {
      tried.push(base_url);
      const answer = answers[base_url] ?? "model_needed";
      if (answer === "listed") return answer;
      throw new ApiError(422, { code: answer, type: "", message: "" });
    };
    return { tried, ask };
  };

  test.each([
    ["http://a/", "openai-chat", { "http://a/v1": "listed" }, ["http://a/", "http://a/v1"], "listed"],
    ["http://a/", "openai-chat", {}, ["http://a/", "http://a/v1"], "model_needed"],
    ["http://a", "openai-chat", { "http://a/v1": "wrong_key" }, ["http://a", "http://a/v1"], "wrong_key"],
    ["http://a", "openai-chat", { "http://a": "wrong_key" }, ["http://a"], "wrong_key"],
    ["http://a/v1", "openai-chat", {}, ["http://a/v1"], "model_needed"],
    ["http://a", "ollama", {}, ["http://a"], "model_needed"],
  ])("%s as %s: with %o, requests are %o, result is %s", async (address, dialect, answers, all, end) => {
    const { tried, ask } = listing(answers);
    const own = { ...at(address), dialect };
    const came = await withV1Fallback(own, ask).catch((error: ApiError) => [own, error.code]);
    expect(tried).toEqual(all);
    expect(came[1]).toBe(end);
  });

  test("equivalent command is valid for a shell", () => {
    expect(commandOf({ ...at("http://gpu:1/a'b?c&d"), dialect: "ollama" }).join(" ")).toBe(
      "throughline connect gpu-1 --base-url 'http://gpu:1/a%27b?c&d' --api ollama",
    );
  });

  test("custom address lists its models, and the working address is saved", async () => {
    const { sent, user } = open([far], ({ base_url, key, model }) => {
      if (base_url === "http://gpu:8000") return refusal("model_needed", 422, { param: "model" });
      if (key ?? model) return undefined;
      return refusal("wrong_key", 422, { param: "key", why: "HTTP 401" });
    });
    await user.click(await screen.findByRole("button", { name: /Custom endpoint/ }));
    const address = screen.getByLabelText("Base URL");
    expect(address).toHaveFocus();
    await user.type(address, "http://gpu:8000");
    expect(screen.getByLabelText("Name")).toHaveValue("gpu-8000");
    await user.keyboard("{Enter}");
    expect(await screen.findByRole("alert")).toHaveTextContent("An API key is required.");
    expect(screen.getByLabelText(/API key/)).toBeInvalid();
    await user.type(screen.getByLabelText(/API key/), "right{Enter}");
    await screen.findByText("Choose a model");
    expect(sent).toHaveLength(4);
    const there = { to: "gpu-8000", base_url: "http://gpu:8000/v1", dialect: "openai-chat" };
    expect(sent.at(-1)).toEqual({ ...there, key: "right" });
    await user.type(screen.getByRole("searchbox"), "two");
    await user.click(screen.getByRole("button", { name: "two" }));
    await waitFor(() => expect(answering.get()).toBe("two"));
    expect(sent.at(-1)).toEqual({ ...there, model: "two", agent: "two" });
  });

  test("upstream without a list of models asks for a name", async () => {
    const { sent, user } = open([], ({ model }) =>
      model === undefined ? refusal("model_needed", 422, { param: "model" }) : undefined,
    );
    await user.click(await screen.findByRole("button", { name: /Custom endpoint/ }));
    await user.type(screen.getByLabelText("Base URL"), "https://gateway.example/v1");
    await user.type(screen.getByLabelText(/API key/), "k");
    await user.selectOptions(screen.getByLabelText("API format"), "Anthropic Messages");
    await user.click(screen.getByRole("button", { name: "Test and connect" }));
    await screen.findByText(/doesn't list its models/);
    expect(screen.queryByText("No results")).toBeNull();
    await user.type(screen.getByRole("searchbox"), "big-one{Enter}");
    await waitFor(() => expect(answering.get()).toBe("big-one"));
    const there = { to: "gateway.example", base_url: "https://gateway.example/v1", dialect: "anthropic" };
    expect(sent.at(-1)).toEqual({ ...there, key: "k", model: "big-one", agent: "big-one" });
  });

  test.each([
    [
      "not_from_here",
      403,
      /throughline connect gpu --base-url 'http:\/\/gpu\/v1' --api openai-chat/,
      "Base URL",
    ],
    ["bad_base_url", 400, /No\./, "Base URL"],
    ["upstream_unreachable", 502, /Can't connect/, "Base URL"],
    ["name_taken", 409, /No\./, "Name"],
  ])("error %s is shown at its field, with a remedy", async (code, status, sent, field) => {
    const param = code === "name_taken" || status === 502 ? {} : { param: "base_url" };
    const { user } = open([], () => refusal(code, status, param));
    await user.click(await screen.findByRole("button", { name: /Custom endpoint/ }));
    await user.type(screen.getByLabelText("Base URL"), "http://gpu/v1{Enter}");
    expect((await screen.findByRole("alert")).textContent).toMatch(sent);
    expect(screen.getByLabelText(field)).toBeInvalid();
    expect(screen.getByLabelText(field === "Name" ? "Base URL" : "Name")).toBeValid();
  });
});

test("upstream with public models and private replies asks for the key later", async () => {
  const { sent, user } = open([near], ({ key, model }) =>
    model !== undefined && key === undefined ? refusal("wrong_key", 422, { param: "key" }) : undefined,
  );
  await user.click(await screen.findByRole("button", { name: /Near/ }));
  await user.click(await screen.findByRole("button", { name: "two" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("An API key is required.");
  await user.type(screen.getByLabelText("API key"), "right{Enter}");
  await screen.findByRole("button", { name: "two" });
  expect(sent.at(-1)).toEqual({ to: "near", key: "right" });
});
