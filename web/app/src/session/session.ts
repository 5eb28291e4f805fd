// Who this browser is to the server. Framework-free.
//
// `throughline serve` prints a link with `#sign-in=…`: good once, for a key of this browser's own. What stands behind `#` is never
// sent to a server, and it goes from the address at once.

import { ApiError, Throughline } from "@throughline/client";
import { DRAFTS_KEY } from "../chat/composer/drafts.ts";

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
      if (kept !== undefined && (await isGood(kept))) return this.#in(kept);
      // A server without keys takes whoever comes without one, and one behind a proxy whom that has signed in; with a link
      // nobody need find that out.
      if (link === undefined && (await isGood(undefined))) return this.#in(undefined);
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

  /** Name of the provider at which people sign in, and where the way to it begins; undefined if there is none. */
  async provider(): Promise<{ name: string; url: string } | undefined> {
    try {
      const { provider } = await new Throughline({ baseUrl: "" }).call("GET /v1/sign-in");
      if (!provider) return undefined;
      const here = encodeURIComponent(location.pathname + location.search);
      return { name: provider.name, url: `${provider.url}?return_to=${here}` };
    } catch {
      // A key is good all the same.
      return undefined;
    }
  }

  /** The key is no longer good. */
  leave(): void {
    if (this.#state.phase !== "in") return;
    forget();
    this.#set({ phase: "out", refused: "key" });
  }

  /**
   * Leaves this browser without a key, and makes the key worthless if it was this browser's own. Gives the address at which a
   * provider ends its session, if there is one.
   */
  async signOut(): Promise<string | undefined> {
    if (this.#state.phase !== "in") return undefined;
    const { provider_url } = await this.#state.client.call("POST /v1/sign-out");
    forget();
    this.#set({ phase: "out" });
    return provider_url ?? undefined;
  }

  #in(key: string | undefined): void {
    // A key that is revoked or too old is noticed wherever it is refused first.
    const guarded: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      if (response.status === 401) this.leave();
      return response;
    };
    const client = new Throughline({ baseUrl: "", key, fetch: guarded, webSocket: globalThis.WebSocket });
    this.#set({ phase: "in", client });
  }

  #set(state: SessionState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

type Link = { ticket: string; key?: undefined } | { key: string };

/** Whether this browser's key is the one with this id, the part of it that is no secret. */
export function isOwnKey(id: string): boolean {
  return read()?.includes(id) ?? false;
}

/** What stands behind `#` of the address, which is clean afterwards. */
export function takeLink(): Link | undefined {
  const [, name, value] = /^#(sign-in|token)=(.+)$/.exec(location.hash) ?? [];
  if (name === undefined || value === undefined) return undefined;
  history.replaceState(history.state, "", location.pathname + location.search);
  return name === "token" ? { key: value } : { ticket: value };
}

/** Whether the server takes it: a server without keys takes any, and one behind a proxy that of whom the proxy names. */
async function isGood(key: string | undefined): Promise<boolean> {
  try {
    await new Throughline({ baseUrl: "", key }).call("GET /v1/models");
    return true;
  } catch (error) {
    if (error instanceof ApiError && [400, 401, 403].includes(error.status)) return false;
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
    // What was typed and not sent is nobody else's to read.
    localStorage.removeItem(DRAFTS_KEY);
  } catch {
    // There was nothing to forget.
  }
}
