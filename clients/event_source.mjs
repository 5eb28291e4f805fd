// The `eventsource` package on the events of a turn. Each connection is cut after so many events.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.PACKAGES + "/");
const { EventSource } = await import(pathToFileURL(require.resolve("eventsource")));

const every = Number(process.argv[2]);
const last = Number(process.argv[3]);
const seen = [];
const connections = [];

/** A body that ends behind `every` events, and asks to be connected anew soon. */
function cut(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let frames = 0;
  let rest = "";
  return new ReadableStream({
    async pull(controller) {
      let end;
      while ((end = rest.indexOf("\n\n")) < 0) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        rest += decoder.decode(value, { stream: true });
      }
      const frame = rest.slice(0, end + 2).replace(/^retry: \d+/m, "retry: 1");
      rest = rest.slice(end + 2);
      controller.enqueue(new TextEncoder().encode(frame));
      frames += frame.includes("id: ") ? 1 : 0;
      if (frames === every) {
        controller.close();
        await reader.cancel();
      }
    },
  });
}

// Its own timer does not keep the process alive while it waits to connect anew.
const awake = setInterval(() => {}, 1_000);
await new Promise((resolve, reject) => {
  const source = new EventSource(process.env.BASE_URL + process.env.EVENTS, {
    async fetch(url, init) {
      const headers = { ...init.headers, Authorization: `Bearer ${process.env.KEY}` };
      const response = await fetch(url, { ...init, headers });
      connections.push({ lastEventId: headers["Last-Event-ID"] ?? null, status: response.status });
      return response.body ? new Response(cut(response.body), response) : response;
    },
  });
  const take = (event) => {
    seen.push(Number(event.lastEventId));
    // What it holds is the event of that number.
    const { seq } = JSON.parse(event.data);
    if (seq !== Number(event.lastEventId)) reject(new Error(`event ${seq} came as ${event.lastEventId}`));
  };
  for (const type of JSON.parse(process.env.TYPES)) source.addEventListener(type, take);
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) resolve();
  };
});
clearInterval(awake);

assert.deepEqual(seen, Array.from({ length: last }, (_, at) => at + 1), "every event once, in order");
connections.forEach(({ lastEventId }, at) => {
  assert.equal(lastEventId, at === 0 ? null : String(Math.min(at * every, last)), "it goes on behind what it has seen");
});
assert.equal(connections.at(-1).status, 204, "and stops when there is nothing more");
assert.ok(connections.length >= last / every, `${connections.length} connections`);
