import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Event, Message, ViewerEvent } from "../src/api.ts";
import { absorb, emptyMessage, TurnStore } from "../src/index.ts";

interface Vector {
  log: Event[];
  message: Message;
}

const folder = new URL("./vectors/", import.meta.url);
const vectors = readdirSync(folder).map((file): [string, Vector] => [
  file,
  JSON.parse(readFileSync(new URL(file, folder), "utf8")),
]);

/** The message after these events, with nothing shared between runs. */
function folded(events: readonly Event[], from: Message = emptyMessage()): Message {
  const message = structuredClone(from);
  for (const event of events) absorb(message, structuredClone(event));
  return message;
}

const byHand = (flush: () => void): void => void Promise.resolve().then(flush);

function shown(store: TurnStore): Message {
  const blocks = store.outline().flatMap(({ at }) => store.block(at) ?? []);
  return { ...store.head(), blocks };
}

describe.each(vectors)("%s", (_, { log, message }) => {
  test("message equals that of the engine", () => {
    expect(folded(log)).toEqual(message);
  });

  test("snapshot at any point with repeated events is the same message", () => {
    fc.assert(
      fc.property(fc.nat(log.length), fc.array(fc.nat(log.length - 1)), (cut, again) => {
        const snapshot = folded(log.slice(0, cut));
        const rest = log.slice(cut).flatMap((event, at) => {
          // After each event, some earlier ones are repeated.
          const old = again.filter((one) => one <= cut + at).slice(0, 3);
          return [event, ...old.flatMap((one) => log[one] ?? [])];
        });
        expect(folded(rest, snapshot)).toEqual(message);
      }),
      { numRuns: 60 },
    );
  });

  test("store shows the message after any start and repetition", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(log.length), fc.boolean(), async (cut, isResync) => {
        const store = new TurnStore(undefined, byHand);
        const half = folded(log.slice(0, cut));
        const whole = { turn_id: half.turn_id, last_seq: half.seq, message: half };
        // A viewer that was ahead gets a resync; a new one begins with a snapshot.
        if (isResync) for (const event of log.slice(0, cut + 1)) store.take(event);
        const first: ViewerEvent = isResync ? { type: "resync", ...whole } : { type: "snapshot", ...whole };
        store.take(first);
        for (const event of log.slice(cut)) {
          store.take(event);
          store.take(event);
        }
        await Promise.resolve();
        await Promise.resolve();
        expect(shown(store)).toEqual(message);
      }),
      { numRuns: 20 },
    );
  });
});

test("unknown events and blocks keep the indexes of the rest", () => {
  const at = { turn_id: "t", timestamp: 1 };
  const log = JSON.parse(
    JSON.stringify([
      { ...at, type: "hologram", seq: 1 },
      { ...at, type: "block_start", seq: 2, block: 0, kind: "smell" },
      { ...at, type: "block_start", seq: 3, block: 1, kind: "text" },
      { ...at, type: "content_delta", seq: 4, block: 1, text: "hi" },
    ]),
  );
  expect(folded(log).blocks).toEqual([{ kind: "unrecognised" }, { kind: "text", text: "hi", state: "open" }]);
});

test("kept characters are counted like on the server", () => {
  const at = { turn_id: "t", timestamp: 1, block: 0 };
  const log: Event[] = [
    { ...at, type: "block_start", seq: 1, kind: "text" },
    { ...at, type: "content_delta", seq: 2, text: "a😀中b" },
    { ...at, type: "block_superseded", seq: 3, keep_chars: 2 },
  ];
  expect(folded(log).blocks[0]).toMatchObject({ text: "a😀" });
});
