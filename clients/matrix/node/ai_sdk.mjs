// The AI SDK with its provider for servers that speak as OpenAI does: CLIENT is `ai-6`, `ai-7`, or `.chat()` of `@ai-sdk/openai`.

import assert from "node:assert/strict";
import { ASKED, KEY, MODEL, OPENAI_URL, WRONG_KEY } from "../cells.mjs";
import { cancelled, expectWeatherOf, load, rejects, run, versionOf, weather } from "../cells.mjs";

const { z } = await load("zod");

/** The packages of each variant. */
const VARIANTS = {
  "ai-6": { sdk: "ai-6", provider: "ai-openai-compatible-2" },
  "ai-7": { sdk: "ai-7", provider: "ai-openai-compatible-3" },
  "ai-openai-chat": { sdk: "ai-7", provider: "ai-openai-4" },
};
const variant = VARIANTS[process.env.CLIENT];
const ai = await load(variant.sdk);
const provider = await load(variant.provider);
const stepsMax = ai.stepCountIs ?? ai.isStepCount;

function model(apiKey = KEY) {
  if (provider.createOpenAI) return provider.createOpenAI({ baseURL: OPENAI_URL, apiKey }).chat(MODEL);
  const settings = { name: "throughline", baseURL: OPENAI_URL, apiKey, supportsStructuredOutputs: true };
  return provider.createOpenAICompatible(settings)(MODEL);
}

const person = z.object({ name: z.string(), age: z.number() });

async function ask(name, settings = {}) {
  return ai.generateText({ model: model(), prompt: ASKED[name], maxRetries: 0, ...settings });
}

/** All text parts of the stream; its error is thrown. */
async function streamed(name, settings = {}) {
  const result = ai.streamText({ model: model(), prompt: ASKED[name], maxRetries: 0, onError() {}, ...settings });
  let text = "";
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") text += part.text;
  }
  return text;
}

async function roundTrip(name, cities, settings = {}) {
  const { cities: seen, run: execute } = weather();
  const inputSchema = z.object({ city: z.string() });
  const get_weather = ai.tool({ description: "Today's weather in a city", inputSchema, execute });
  const { text } = await ask(name, { tools: { get_weather }, stopWhen: stepsMax(5), ...settings });
  expectWeatherOf(cities, seen);
  return text;
}

const cells = {
  plain: async () => (await ask("plain")).text,
  stream: () => streamed("stream"),
  server_tool: () => streamed("server_tool"),
  slow_tool: () => streamed("slow_tool"),
  client_tool: () => roundTrip("client_tool", ["Paris"]),
  parallel_tools: () => roundTrip("parallel_tools", ["Paris", "Oslo"]),
  mixed_tools: () => roundTrip("mixed_tools", ["Paris"]),

  /** By the response's format in both ways, and by a call that is required. */
  async structured() {
    const forced = await ask("client_tool", {
      tools: { get_weather: ai.tool({ description: "Weather", inputSchema: z.object({ city: z.string() }) }) },
      toolChoice: "required",
    });
    assert.deepEqual(forced.toolCalls.map((call) => call.input), [{ city: "Paris" }]);
    if (ai.generateObject) {
      const { object } = await ai.generateObject({
        model: model(), prompt: ASKED.structured, schema: person, maxRetries: 0,
      });
      assert.deepEqual(object, { name: "Ada", age: 36 });
    }
    return (await ask("structured", { output: ai.Output.object({ schema: person }) })).output;
  },

  structured_tools: async () => (await ask("structured_tools", { output: ai.Output.object({ schema: person }) })).output,

  async approval() {
    const text = await streamed("approval");
    assert.ok(text.endsWith("As you wish."), text);
  },

  async wrong_key() {
    const refused = await rejects(() => ask("plain", { model: model(WRONG_KEY) }));
    assert.equal(refused.statusCode, 401);
  },

  async rate_limit() {
    for (const question of [ask, streamed]) {
      const refused = await rejects(() => question("rate_limit"));
      assert.equal(refused.statusCode, 429);
      assert.equal(refused.isRetryable, true);
      assert.ok(Number(refused.responseHeaders["retry-after"]) > 0, "Retry-After");
    }
  },

  async cut() {
    await rejects(() => streamed("cut"));
  },

  cancel: () =>
    cancelled(async (isRunning) => {
      const abort = new AbortController();
      const result = ai.streamText({ model: model(), prompt: ASKED.cancel, abortSignal: abort.signal, onError() {} });
      for await (const part of result.fullStream) {
        // What had come before the abort is still read.
        if (part.type === "text-delta" && !abort.signal.aborted) {
          await isRunning();
          abort.abort();
        }
      }
    }),
};

const versions = `${versionOf(variant.sdk)} + ${versionOf(variant.provider)}`;
await run(process.env.CLIENT, versions, cells);
