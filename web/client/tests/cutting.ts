// An unreliable proxy.

import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy on loopback that cuts every stream of events after a number of bytes, and asks for a short wait before the next. */
export class CuttingProxy {
  /** Number of requested event streams. */
  streams = 0;
  /** Number of responses to `POST /v1/turns` to drop. */
  lost = 0;
  readonly #server: Server;
  readonly #target: URL;
  readonly #every: number;
  #allowed: number;
  #search: string | undefined;

  constructor(target: string, every: number) {
    this.#target = new URL(target);
    this.#every = every;
    this.#allowed = every;
    this.#server = createServer((incoming, answer) => this.#pass(incoming, answer));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #pass(incoming: IncomingMessage, answer: ServerResponse): void {
    const url = new URL(incoming.url ?? "/", this.#target);
    const headers = { ...incoming.headers, host: this.#target.host, connection: "close" };
    const onward = request(url, { method: incoming.method, headers }, (from) => {
      if (incoming.method === "POST" && url.pathname === "/v1/turns" && this.lost > 0) {
        this.lost -= 1;
        from.resume();
        from.on("end", () => incoming.socket.destroy());
        return;
      }
      answer.writeHead(from.statusCode ?? 502, from.headers);
      const isStream = (from.headers["content-type"] ?? "").startsWith("text/event-stream");
      if (isStream) this.#cut(url, from, answer);
      else from.pipe(answer);
    });
    onward.on("error", () => incoming.socket.destroy());
    answer.on("close", () => onward.destroy());
    incoming.pipe(onward);
  }

  #cut(url: URL, from: IncomingMessage, answer: ServerResponse): void {
    this.streams += 1;
    const search = url.search;
    // Less than one event makes no progress: bytes pass until one is complete.
    this.#allowed = search === this.#search ? this.#allowed * 2 : this.#every;
    this.#search = search;
    let left = this.#allowed;
    from.on("data", (piece: Buffer) => {
      if (left <= 0) return;
      // The opening arrives in one piece, and is the same for all.
      const bytes = Buffer.from(piece.toString("latin1").replace(/^retry: \d+/, "retry: 1"), "latin1");
      answer.write(bytes.subarray(0, left));
      left -= bytes.length;
      if (left <= 0) {
        from.destroy();
        // Written bytes are flushed first, so that the cut is exact.
        setImmediate(() => answer.destroy());
      }
    });
    from.on("end", () => answer.end());
    from.on("error", () => answer.destroy());
  }
}
