// The bench model: Chat Completions at a fixed rate, with the time of each piece. It also serves the tool that the model calls, and
// the pages of the peers.

import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { CALLS_A_STEP, dice, type Load, type Piece, piecesOf, words } from "./script.ts";

/** Interval of sending due pieces. */
const TICK_MS = 4;
/** Duration of the tool, so that a running card is visible. */
const TOOL_MS = 250;
const TYPES: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
};

/** One turn with all of its steps. */
export interface Run {
  /** Time when each stamp was sent, in milliseconds since 1970. */
  stamps: number[];
  /** Time when the first byte of each call was sent. */
  calls: number[];
  characters: number;
  pieces: number;
  /** Time of the first and the last piece. */
  began: number;
  ended?: number;
}

interface Progress extends Run {
  load: Load;
  script: readonly Piece[];
  at: number;
}

export class Upstream {
  readonly #runs = new Map<string, Progress>();
  readonly #server: Server;
  readonly #peers: string;

  private constructor(peers: string) {
    this.#peers = peers;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
  }

  /** `peers`: folder with the pages of the peers. */
  static async start(peers: string): Promise<Upstream> {
    const upstream = new Upstream(peers);
    await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", resolve));
    return upstream;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The run for this question. */
  run(question: string): Run | undefined {
    return this.#runs.get(question);
  }

  /** Allows the same questions again. */
  forget(): void {
    this.#runs.clear();
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? "/", "http://x").pathname;
    if (request.method === "GET") {
      if (path === "/v1/models")
        return json(response, { object: "list", data: [{ id: "any", object: "model" }] });
      return await this.#file(path, response);
    }
    const body: unknown = JSON.parse(await textOf(request));
    if (path === "/tool") {
      setTimeout(() => json(response, rowsOf(body)), TOOL_MS);
      return;
    }
    const question = questionOf(body);
    let run = this.#runs.get(question);
    if (run === undefined) {
      const load = loadOf(question);
      run = {
        load,
        script: piecesOf(load),
        at: 0,
        stamps: [],
        calls: [],
        characters: 0,
        pieces: 0,
        began: Date.now(),
      };
      this.#runs.set(question, run);
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.socket?.setNoDelay(true);
    speak(run, response);
  }

  async #file(path: string, response: ServerResponse): Promise<void> {
    const file = join(this.#peers, normalize(path.endsWith("/") ? `${path}index.html` : path));
    const bytes = await readFile(file).catch(() => undefined);
    response.writeHead(bytes === undefined ? 404 : 200, {
      "content-type": TYPES[extname(file)] ?? "text/plain",
    });
    response.end(bytes);
  }
}

/** Sends due pieces until the step has ended. The clock goes on during a tool, so missed pieces follow at once. */
function speak(run: Progress, response: ServerResponse): void {
  const { script, load } = run;
  const isPaced = load.rate > 0;
  const perMs = script.length / (load.seconds * 1_000);
  const tick = (): void => {
    if (response.destroyed) return;
    const due = isPaced
      ? Math.min(script.length, Math.floor((Date.now() - run.began) * perMs))
      : script.length;
    const chunks: string[] = [];
    while (run.at < due) {
      const piece = script[run.at];
      run.at += 1;
      if (piece === undefined) break;
      if (piece.kind === "step") {
        response.end(`${chunks.join("")}${finish("tool_calls")}`);
        return;
      }
      chunks.push(chunk(piece, run));
    }
    if (run.at < script.length) {
      if (chunks.length > 0) response.write(chunks.join(""));
      setTimeout(tick, TICK_MS);
      return;
    }
    run.ended = Date.now();
    response.end(`${chunks.join("")}${finish("stop")}`);
  };
  tick();
}

function chunk(piece: Exclude<Piece, { kind: "step" }>, run: Progress): string {
  run.pieces += 1;
  switch (piece.kind) {
    case "stamp":
      run.stamps[piece.stamp] = Date.now();
      run.characters += piece.text.length;
      return data({ content: piece.text });
    case "text":
      run.characters += piece.text.length;
      return data({ content: piece.text });
    case "open":
      run.calls[piece.call] = Date.now();
      return data({
        tool_calls: [callOf(piece.call, { id: `call_${piece.call}`, name: "bench_search", text: "" })],
      });
    case "arguments":
      return data({ tool_calls: [callOf(piece.call, { text: piece.text })] });
  }
}

/** Fragments of a call after the first have only its index, as with OpenAI. */
function callOf(call: number, { id, name, text }: { id?: string; name?: string; text: string }) {
  return {
    index: call % CALLS_A_STEP,
    ...(id === undefined ? {} : { id, type: "function" }),
    function: { ...(name === undefined ? {} : { name }), arguments: text },
  };
}

function data(delta: unknown, reason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 0, model: "any", choices })}\n\n`;
}

const finish = (reason: string): string => `${data({}, reason)}data: [DONE]\n\n`;

function loadOf(question: string): Load {
  const number = (name: string): number => Number(new RegExp(`\\b${name}=(\\d+)`).exec(question)?.[1] ?? 0);
  return { rate: number("rate"), seconds: number("seconds"), cards: number("cards"), rows: number("rows") };
}

/** The last message of the user. */
function questionOf(body: unknown): string {
  const messages = (body as { messages?: { role: string; content: unknown }[] }).messages ?? [];
  const content = messages.findLast(({ role }) => role === "user")?.content;
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? "").join("") : "";
}

function rowsOf(body: unknown): unknown {
  const { limit = 40 } = body as { limit?: number };
  const random = dice(11);
  return {
    rows: Array.from({ length: limit }, (_, id) => ({ id, title: words(random, 5), score: id / limit })),
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
}
