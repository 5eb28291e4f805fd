// Who this browser is to the server. Framework-free.
//
// `throughline serve` prints a link with `#sign-in=…`: good once, for a key of this browser's own. What stands behind `#` is never
// sent to a server, and it goes from the address at once.

import { ApiError, Throughline } from "@throughline/client";

export const KEY = "throughline.key";

export type SessionState =
  | { phase: "entering" }
  | { phase: "in"; client: Throughline }
  /** Nobody: a key is needed. `refused`: what was shown is no good (any more). */
  | { phase: "out"; refused?: "link" | "key" }
  /** The server cannot be reached; it is tried again. */
  | { phase: "unreachable" };

const RETRY_MS = 2_000;

export class Session {
  #state: SessionState = { phase: "entering" };
  readonly #listeners = new Set<() => void>();

  readonly get = (): SessionState => this.#state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Comes in with what there is: a kept key, or a link. */
  async enter(link = takeLink()): Promise<void> {
    this.#set({ phase: "entering" });
    try {
      const kept = read();
      // A server without keys takes whoever comes without one, too; with a link nobody need find that out.
      if ((kept !== undefined || link === undefined) && (await isGood(kept))) return this.#in(kept);
      if (link === undefined)
        return this.#set({ phase: "out", ...(kept === undefined ? {} : { refused: "key" }) });
      if (link.key !== undefined) return await this.use(link.key);
      const made = await new Throughline({ baseUrl: "" }).call("POST /v1/sign-in", {
        body: { ticket: link.ticket },
      });
      keep(made.key);
      this.#in(made.key);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401)
        return this.#set({ phase: "out", refused: "link" });
      this.#set({ phase: "unreachable" });
      setTimeout(() => void this.enter(link), RETRY_MS);
    }
  }

  /** Comes in with a key that somebody has typed. */
  async use(key: string): Promise<void> {
    if (!(await isGood(key))) return this.#set({ phase: "out", refused: "key" });
    keep(key);
    this.#in(key);
  }

  /** The key is no longer good. */
  leave(): void {
    if (this.#state.phase !== "in") return;
    forget();
    this.#set({ phase: "out", refused: "key" });
  }

  #in(key: string | undefined): void {
    // A key that is revoked or too old is noticed wherever it is refused first.
    const guarded: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      if (response.status === 401) this.leave();
      return response;
    };
    this.#set({ phase: "in", client: new Throughline({ baseUrl: "", key, fetch: guarded }) });
  }

  #set(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

type Link = { ticket: string; key?: undefined } | { key: string };

/** What stands behind `#` of the address, which is clean afterwards. */
export function takeLink(): Link | undefined {
  const [, name, value] = /^#(sign-in|token)=(.+)$/.exec(location.hash) ?? [];
  if (name === undefined || value === undefined) return undefined;
  history.replaceState(history.state, "", location.pathname + location.search);
  return name === "token" ? { key: value } : { ticket: value };
}

/** Whether the server takes it; a server without keys takes none at all. */
async function isGood(key: string | undefined): Promise<boolean> {
  try {
    await new Throughline({ baseUrl: "", key }).call("GET /v1/models");
    return true;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return false;
    throw error;
  }
}

function read(): string | undefined {
  try {
    return localStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

function keep(key: string): void {
  try {
    localStorage.setItem(KEY, key);
  } catch {
    // It is good for as long as the page is open.
  }
}

function forget(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // There was nothing to forget.
  }
}
