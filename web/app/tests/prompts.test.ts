// Saved prompts: placeholders, and the library on the server.

import { ApiError, type SavedPrompt, Throughline } from "@throughline/client";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { foundIn, PromptLibrary, typedIn } from "../src/chat/prompts/library.ts";
import { filledIn, placeholdersIn } from "../src/chat/prompts/placeholders.ts";

const prompt = (name: string, text = "", version = 1): SavedPrompt => ({
  name,
  text,
  version,
  updated_at: 1,
});

describe("placeholders", () => {
  test.each<[string, string[]]>([
    ["About {{topic}} for {{ audience }}, {{topic}} again", ["topic", "audience"]],
    ["{{ }} {{}} {{a\nb}} {single} {{{x}}}", ["x"]],
    [`{{${"x".repeat(61)}}}`, []],
    ["{{主题}}", ["主题"]],
  ])("%j has the placeholders %j", (text, names) => expect(placeholdersIn(text)).toEqual(names));

  test("placeholders are replaced at once, and braces in answers stay", () => {
    expect(filledIn("{{a}} and {{ b }}, {{a}}", { a: "{{b}}", b: "$&" })).toBe("{{b}} and $&, {{b}}");
    expect(filledIn("a {{gone}} b {{ }}", {})).toBe("a  b {{ }}");
    expect(filledIn("{{toString}}", {})).toBe("");
  });

  test("other text is unchanged", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        fc.pre(placeholdersIn(text).length === 0);
        expect(filledIn(text, {})).toBe(text);
      }),
    );
  });
});

test("prompts are found by name, then by text, ignoring spaces in names", () => {
  const all = [prompt("Reply", "to a report"), prompt("Weekly report", "x")];
  expect(foundIn(all, "REPORT").map(({ name }) => name)).toEqual(["Weekly report", "Reply"]);
  expect(foundIn(all, "")).toEqual(all);
  expect(typedIn(all, "/weeklyre").map(({ name }) => name)).toEqual(["Weekly report"]);
  expect(typedIn(all, "/")).toEqual(all);
});

describe("prompt library", () => {
  const library = (answers: Record<string, unknown>) => {
    const requests: string[] = [];
    const answer = async (input: RequestInfo | URL, init?: RequestInit) => {
      const request = new Request(input, init);
      const name = `${request.method} ${new URL(request.url).pathname}`;
      requests.push(`${name} ${await request.text()}`.trim());
      const body = answers[name];
      if (body instanceof Response) return body;
      return body === undefined ? new Response(null, { status: 204 }) : Response.json(body);
    };
    const client = new Throughline({ baseUrl: "http://server", fetch: answer as typeof fetch });
    return { requests, library: new PromptLibrary(client) };
  };

  test("new prompt requires a free name, and a changed one an unchanged version", async () => {
    const { requests, library: of } = library({
      "GET /v1/saved-prompts": { items: [prompt("b", "B", 3)] },
      "PUT /v1/saved-prompts/a": prompt("a", "A"),
      "PUT /v1/saved-prompts/b": prompt("b", "BB", 4),
    });
    await Promise.all([of.load(), of.load()]);
    await of.save("a", "A");
    await of.save("b", "BB", prompt("b", "B", 3));
    expect(requests).toEqual([
      "GET /v1/saved-prompts",
      'PUT /v1/saved-prompts/a {"text":"A","version":0}',
      'PUT /v1/saved-prompts/b {"text":"BB","version":3}',
    ]);
    expect(of.get().prompts).toEqual([prompt("a", "A"), prompt("b", "BB", 4)]);
  });

  test("rename keeps the prompt, and delete removes it", async () => {
    const { requests, library: of } = library({
      "GET /v1/saved-prompts": { items: [prompt("old", "text")] },
      "PUT /v1/saved-prompts/new": prompt("new", "text"),
    });
    await of.load();
    await of.save("new", "text", prompt("old", "text"));
    expect(requests.slice(1)).toEqual([
      'PUT /v1/saved-prompts/new {"text":"text","version":0}',
      "DELETE /v1/saved-prompts/old",
    ]);
    await of.remove("new");
    expect(of.get().prompts).toEqual([]);
  });

  test("unreachable server leaves known prompts, and refusals are thrown", async () => {
    const { library: of } = library({
      "PUT /v1/saved-prompts/a": Response.json(
        { error: { code: "too_many_prompts", type: "conflict", message: "many", param: null } },
        { status: 409 },
      ),
      "GET /v1/saved-prompts": Response.json({}, { status: 500 }),
    });
    await of.load();
    expect(of.get().failure).toBeInstanceOf(ApiError);
    await expect(of.save("a", "A")).rejects.toMatchObject({ code: "too_many_prompts" });
    expect(of.get().prompts).toBeUndefined();
  });
});
