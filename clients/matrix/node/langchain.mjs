// LangChain.js: ChatOpenAI.

import assert from "node:assert/strict";
import { ASKED, KEY, MODEL, OPENAI_URL, PERSON, WRONG_KEY } from "../cells.mjs";
import { cancelled, expectWeatherOf, load, rejects, run, versionOf, weather } from "../cells.mjs";

const { ChatOpenAI } = await load("@langchain/openai");
const { tool } = await load("@langchain/core/tools");
const { HumanMessage } = await load("@langchain/core/messages");
const { z } = await load("zod");

const person = z.object({ name: z.string(), age: z.number() });

function model(more = {}) {
  return new ChatOpenAI({ model: MODEL, apiKey: KEY, maxRetries: 0, configuration: { baseURL: OPENAI_URL }, ...more });
}

const ask = async (name, more) => (await model(more).invoke(ASKED[name])).text;

async function streamed(name) {
  let text = "";
  for await (const chunk of await model().stream(ASKED[name])) text += chunk.text;
  return text;
}

async function roundTrip(name, cities) {
  const { cities: seen, run: execute } = weather();
  const schema = z.object({ city: z.string() });
  const getWeather = tool(execute, { name: "get_weather", description: "Today's weather in a city", schema });
  const bound = model().bindTools([getWeather]);
  const history = [new HumanMessage(ASKED[name])];
  for (;;) {
    const answer = await bound.invoke(history);
    if (answer.tool_calls.length === 0) {
      expectWeatherOf(cities, seen);
      return answer.text;
    }
    history.push(answer);
    for (const call of answer.tool_calls) history.push(await getWeather.invoke(call));
  }
}

const cells = {
  plain: () => ask("plain"),
  stream: () => streamed("stream"),
  server_tool: () => streamed("server_tool"),
  slow_tool: () => streamed("slow_tool"),
  client_tool: () => roundTrip("client_tool", ["Paris"]),
  parallel_tools: () => roundTrip("parallel_tools", ["Paris", "Oslo"]),
  mixed_tools: () => roundTrip("mixed_tools", ["Paris"]),

  /** By a call that is forced, and by the default, the response's format. */
  async structured() {
    const forced = model().withStructuredOutput(person, { name: "extract", method: "functionCalling" });
    assert.deepEqual(await forced.invoke("Tell me by extract who she is."), PERSON);
    const modes = model().withStructuredOutput(person, { method: "jsonMode" });
    assert.deepEqual(await modes.invoke(ASKED.structured), PERSON);
    return model().withStructuredOutput(person).invoke(ASKED.structured);
  },

  structured_tools: () => model().withStructuredOutput(person).invoke(ASKED.structured_tools),

  async approval() {
    const text = await streamed("approval");
    assert.ok(text.endsWith("As you wish."), text);
  },

  async wrong_key() {
    const refused = await rejects(() => ask("plain", { apiKey: WRONG_KEY }));
    assert.equal(refused.status, 401);
  },

  async rate_limit() {
    const refused = await rejects(() => ask("rate_limit"));
    assert.equal(refused.status, 429);
    assert.equal(refused.constructor.name, "RateLimitError");
    assert.ok(Number(refused.headers.get("retry-after")) > 0, "Retry-After");
  },

  async cut() {
    await rejects(() => streamed("cut"));
  },

  cancel: () =>
    cancelled(async (isRunning) => {
      const abort = new AbortController();
      await rejects(async () => {
        for await (const chunk of await model().stream(ASKED.cancel, { signal: abort.signal })) {
          if (chunk.text && !abort.signal.aborted) {
            await isRunning();
            abort.abort();
          }
        }
      });
    }),
};

await run("LangChain.js", versionOf("@langchain/openai"), cells);
