// The conversations there are, newest first, or those in which a text is found. Framework-free. R: S4

import type { ConversationInfo, Throughline } from "@throughline/client";

export interface ListState {
  items: readonly ConversationInfo[];
  next: string | undefined;
  query: string;
  isLoading: boolean;
}

const ROWS = 40;

export class ConversationList {
  #state: ListState = { items: [], next: undefined, query: "", isLoading: false };
  #asked = 0;
  readonly #client: Throughline;
  readonly #listeners = new Set<() => void>();

  constructor(client: Throughline) {
    this.#client = client;
  }

  readonly get = (): ListState => this.#state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Asks anew, for this text. */
  async load(query = this.#state.query): Promise<void> {
    this.#set({ query, isLoading: true });
    await this.#ask(query, undefined);
  }

  async more(): Promise<void> {
    const { next, query } = this.#state;
    if (next !== undefined) await this.#ask(query, next);
  }

  async rename(id: string, title: string): Promise<void> {
    await this.#client.call("PATCH /v1/conversations/{conversation_id}", {
      path: { conversation_id: id },
      body: { title },
    });
    await this.load();
  }

  async remove(id: string): Promise<void> {
    await this.#client.call("DELETE /v1/conversations/{conversation_id}", { path: { conversation_id: id } });
    this.#set({ items: this.#state.items.filter((one) => one.id !== id) });
  }

  async #ask(query: string, cursor: string | undefined): Promise<void> {
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const page = await this.#client.call("GET /v1/conversations", {
        query: {
          limit: ROWS,
          ...(query === "" ? {} : { q: query }),
          ...(cursor === undefined ? {} : { cursor }),
        },
      });
      // An answer to what is no longer asked.
      if (asked !== this.#asked) return;
      const items = cursor === undefined ? page.items : [...this.#state.items, ...page.items];
      this.#set({ items, next: page.next ?? undefined });
      // A search whose time was over before it found something goes on.
      if (page.partial && page.items.length === 0 && page.next != null) await this.#ask(query, page.next);
    } catch {
      // What was there stays; opening the list again asks again.
    } finally {
      if (asked === this.#asked) this.#set({ isLoading: false });
    }
  }

  #set(change: Partial<ListState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }
}
