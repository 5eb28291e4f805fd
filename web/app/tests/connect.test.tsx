// The dialog of models without a server: what is near stands first, and a key is sent once and kept nowhere.

import { render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Throughline } from "@throughline/client";
import { expect, test } from "vitest";
import ModelsDialog from "../src/connect/dialog.tsx";
import { agentName, byState, stateOf } from "../src/connect/state.ts";
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

// R: O4
test("what can be used at once stands first", () => {
  const sorted = [away, far, set, near, used].sort(byState);
  expect(sorted.map((one) => [one.name, stateOf(one)])).toEqual([
    ["used", "connected"],
    ["near", "here"],
    ["set", "environment"],
    ["far", "key"],
    ["away", "away"],
  ]);
});

test("an agent is called like its model, and not like one of the configuration file", () => {
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

// R: O4, R4
test("a wrong key is told at its field; the right one leads to the models, and is forgotten by the page", async () => {
  const sent: unknown[] = [];
  const json = (body: unknown, status = 200): Response => new Response(JSON.stringify(body), { status });
  const client = new Throughline({
    baseUrl: "http://server",
    fetch: async (input, init) => {
      const path = new URL(String(input)).pathname;
      if (path === "/v1/agents") return json({ items: [] });
      if (path === "/v1/upstreams/known") return json({ items: [away, far] });
      const body: { key?: string; model?: string; agent?: string } = JSON.parse(String(init?.body));
      sent.push(body);
      if (body.key === "wrong") {
        const error = { code: "wrong_key", type: "invalid_request_error", message: "No.", why: "HTTP 401" };
        return json({ error }, 422);
      }
      return json({ upstream: {}, models: ["m/one", "two"], ...(body.agent ? { agent: body.agent } : {}) });
    },
  });
  const user = userEvent.setup();
  render(
    <ClientProvider value={client}>
      <ModelsDialog close={() => undefined} />
    </ClientProvider>,
  );
  await user.click(await screen.findByRole("button", { name: /Far/ }));
  const field = screen.getByLabelText("API key");
  await user.type(field, "wrong{Enter}");
  expect((await screen.findByRole("alert")).textContent).toContain("HTTP 401");
  await user.clear(field);
  await user.type(field, "right{Enter}");
  await user.click(await screen.findByRole("button", { name: "m/one" }));
  await waitFor(() => expect(answering.get()).toBe("one"));
  expect(sent).toEqual([{ key: "wrong" }, { key: "right" }, { model: "m/one", agent: "one" }]);
  expect(JSON.stringify({ ...localStorage })).not.toContain("right");
});
