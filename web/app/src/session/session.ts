// Sign-in state of this browser. Framework-free.
//
// `throughline serve` prints a link with `#sign-in=…`, which is exchanged once for a key of this browser. The hash is never sent to a
// server, and is removed from the address at once.

import { ApiError, Throughline } from "@throughline/client";
import { DRAFTS_KEY } from "../chat/composer/drafts.ts";
import { Store } from "../store.ts";

export const KEY = "throughline.key";

export type SessionState =
  | { phase: "entering" }
  | { phase: "in"; client: Throughline }
  /** Signed out: a key is needed. `refused`: the link or key was not (or is no longer) valid. */
  | { phase: "out"; refused?: "link" | "key" }
  /** The server cannot be reached; it is retried. */
  | { phase: "unreachable" };

const RETRY_MS = 2_000;

export class Session extends Store<SessionState> {
  constructor() {
    super({ phase: "entering" });
  }

  /** Signs in with a stored key or a link. */
  async enter(link = takeLink()): Promise<void> {
    this.replace({ phase: "entering" });
    try {
      const kept = read();
      if (kept !== undefined && (await isGood(kept))) return this.#in(kept);
      // A server without keys accepts everybody, and one behind a proxy those whom the proxy has signed in; with a link no check is
      // needed.
      if (link === undefined && (await isGood(undefined))) return this.#in(undefined);
      if (link === undefined)
        return this.replace({ phase: "out", ...(kept === undefined ? {} : { refused: "key" }) });
      if (link.key !== undefined) return await this.use(link.key);
      const made = await new Throughline({ baseUrl: "" }).call("POST /v1/sign-in", {
        body: { ticket: link.ticket },
      });
      keep(made.key);
      this.#in(made.key);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401)
        return this.replace({ phase: "out", refused: "link" });
      this.replace({ phase: "unreachable" });
      setTimeout(() => void this.enter(link), RETRY_MS);
    }
  }

  /** Signs in with a typed key. */
  async use(key: string): Promise<void> {
    if (!(await isGood(key))) return this.replace({ phase: "out", refused: "key" });
    keep(key);
    this.#in(key);
  }

  /** Name and sign-in address of the identity provider; undefined if there is none. */
  async provider(): Promise<{ name: string; url: string } | undefined> {
    try {
      const { provider } = await new Throughline({ baseUrl: "" }).call("GET /v1/sign-in");
      if (!provider) return undefined;
      const here = encodeURIComponent(location.pathname + location.search);
      return { name: provider.name, url: `${provider.url}?return_to=${here}` };
    } catch {
      // Keys still work.
      return undefined;
    }
  }

  /** The key is no longer valid. */
  leave(): void {
    if (this.state.phase !== "in") return;
    forget();
    this.replace({ phase: "out", refused: "key" });
  }

  /**
   * Removes the key from this browser, and revokes it if it was this browser's own. Returns the address at which a provider ends its
   * session, if there is one.
   */
  async signOut(): Promise<string | undefined> {
    if (this.state.phase !== "in") return undefined;
    const { provider_url } = await this.state.client.call("POST /v1/sign-out");
    forget();
    this.replace({ phase: "out" });
    return provider_url ?? undefined;
  }

  #in(key: string | undefined): void {
    // A revoked or expired key is noticed when it is next refused.
    const guarded: typeof fetch = async (input, init) => {
      const response = await fetch(input, init);
      if (response.status === 401) this.leave();
      return response;
    };
    const client = new Throughline({ baseUrl: "", key, fetch: guarded, webSocket: globalThis.WebSocket });
    this.replace({ phase: "in", client });
  }
}

type Link = { ticket: string; key?: undefined } | { key: string };

/** True for the id of this browser's key; the id is the public part of a key. */
export function isOwnKey(id: string): boolean {
  return read()?.includes(id) ?? false;
}

/** Takes the sign-in link from the hash, and removes it from the address. */
export function takeLink(): Link | undefined {
  const [, name, value] = /^#(sign-in|token)=(.+)$/.exec(location.hash) ?? [];
  if (name === undefined || value === undefined) return undefined;
  history.replaceState(history.state, "", location.pathname + location.search);
  return name === "token" ? { key: value } : { ticket: value };
}

/** True if the server accepts the key; servers without keys accept any, and servers behind a proxy the proxy's user. */
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
    // Without storage, the key is kept while the page is open.
  }
}

function forget(): void {
  try {
    localStorage.removeItem(KEY);
    // Drafts must not be readable for the next user.
    localStorage.removeItem(DRAFTS_KEY);
  } catch {
    // Storage is not available.
  }
}
