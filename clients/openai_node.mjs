// openai-node, as its users write it.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are not beside this file.
const require = createRequire(process.env.PACKAGES + "/");
const { default: OpenAI } = await import(pathToFileURL(require.resolve("openai")));

const client = new OpenAI({ baseURL: process.env.BASE_URL + "/v1", apiKey: process.env.KEY, maxRetries: 0 });
const asked = [{ role: "user", content: "What's the weather in Paris?" }];
const text = "Let me look. \n\nSunny in Paris.";

/** A tool of the client's that counts how often it runs. */
function counted(name) {
  const tool = { runs: 0 };
  tool.definition = {
    type: "function",
    function: {
      name,
      description: "The user's clock",
      parameters: { type: "object", properties: { zone: { type: "string" } } },
      parse: JSON.parse,
      function: () => {
        tool.runs += 1;
        return "12:30";
      },
    },
  };
  return tool;
}

const checks = {
  /** Chunk by chunk, with the idiom of every tutorial. */
  async raw() {
    let content = "";
    const roles = [], finishes = [];
    for await (const chunk of await client.chat.completions.create({ model: "default", messages: asked, stream: true })) {
      const choice = chunk.choices[0];
      content += choice.delta.content ?? "";
      if (choice.delta.role) roles.push(choice.delta.role);
      if (choice.finish_reason) finishes.push(choice.finish_reason);
    }
    assert.deepEqual({ content, roles, finishes }, { content: text, roles: ["assistant"], finishes: ["stop"] });
  },

  /** `.stream()`, which folds the chunks by itself. */
  async helper() {
    const stream = client.chat.completions.stream({
      model: "default", messages: asked, stream_options: { include_usage: true },
    });
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices.length, 1);
    assert.equal(final.choices[0].message.role, "assistant");
    assert.equal(final.choices[0].message.content, text);
    assert.equal(final.choices[0].message.tool_calls, undefined);
    assert.equal(final.choices[0].finish_reason, "stop");
    assert.equal(final.usage.total_tokens, 1135);
  },

  /** A connection that is cut is no answer. */
  async cut() {
    const stream = client.chat.completions.stream({ model: "default", messages: asked });
    await assert.rejects(stream.finalChatCompletion());
  },

  /** A tool with the name of a server's: the client's runs in its place. */
  async same_name() {
    const tool = counted("weather_today");
    const runner = client.chat.completions.runTools({ model: "default", messages: asked, stream: true, tools: [tool.definition] });
    assert.equal(await runner.finalContent(), "Sunny in Paris.");
    assert.equal(tool.runs, 1);
  },

  /** The server's tool runs on the server, and the runner does not notice. */
  async server_tool() {
    const tool = counted("local_time");
    const runner = client.chat.completions.runTools({ model: "default", messages: asked, stream: true, tools: [tool.definition] });
    assert.equal(await runner.finalContent(), text);
    assert.equal(tool.runs, 0);
  },

  /** One of each in the same step: the client's runs once, and the round trip ends. */
  async own_tool() {
    const tool = counted("local_time");
    const runner = client.chat.completions.runTools({ model: "default", messages: asked, stream: true, tools: [tool.definition] });
    assert.equal(await runner.finalContent(), "Sunny at 12:30.");
    assert.equal(tool.runs, 1);
  },
};

await checks[process.argv[2]]();
