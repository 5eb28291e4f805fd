// The conversations of a view, page by page, or the messages that match a search. Framework-free.

import type {
  ConversationInfo,
  ConversationLabelList,
  SearchResult,
  Throughline,
  UpdateConversation,
} from "@throughline/client";
import { Store } from "../../../store.ts";

/** `""` = the default list, `archived`, `folder:NAME` or `tag:NAME`. */
export type ListView = string;

export interface ListState {
  view: ListView;
  items: readonly ConversationInfo[];
  next: string | undefined;
  query: string;
  hits: readonly SearchResult[];
  hitsNext: string | undefined;
  labels: ConversationLabelList;
  isLoading: boolean;
}

const ROWS = 100;
const HITS = 50;
/** A search page may time out without a hit; this many empty pages are followed automatically. */
const EMPTY_PAGES_MAX = 20;

export class ConversationList extends Store<ListState> {
  #latest = 0;
  readonly #client: Throughline;

  constructor(client: Throughline) {
    super({
      view: "",
      items: [],
      next: undefined,
      query: "",
      hits: [],
      hitsNext: undefined,
      labels: { folders: [], tags: [] },
      isLoading: true,
    });
    this.#client = client;
  }

  /** Shows another view from its beginning. */
  async choose(view: ListView): Promise<void> {
    this.update({ view, items: [], next: undefined, isLoading: true });
    await this.refresh();
  }

  /** Reloads the first page. Later pages stay loaded. */
  async refresh(): Promise<void> {
    const { view, query } = this.state;
    // A search does not change with the list.
    if (query.trim() !== "") return;
    const request = this.#nextRequest();
    try {
      const [page, labels] = await Promise.all([
        this.#page(view, undefined),
        this.#client.call("GET /v1/conversations/labels"),
      ]);
      if (request !== this.#latest || view !== this.state.view) return;
      const known = new Set(page.items.map(({ id }) => id));
      // Older conversations follow this page, as before.
      const last = page.items.at(-1)?.updated_at ?? 0;
      const { items, next } = this.state;
      const older =
        page.next == null ? [] : items.filter((one) => !known.has(one.id) && one.updated_at < last);
      const isMore = older.length > 0;
      this.update({
        items: [...page.items, ...older],
        next: isMore ? next : (page.next ?? undefined),
        labels,
      });
    } catch {
      // Loaded rows stay; the next refresh tries again.
    } finally {
      if (request === this.#latest) this.update({ isLoading: false });
    }
  }

  /** Loads the next page of the list or of the hits. */
  async more(): Promise<void> {
    const { view, next, isLoading, query, hitsNext } = this.state;
    if (isLoading) return;
    if (query !== "") {
      if (hitsNext !== undefined) await this.#find(query, hitsNext);
      return;
    }
    if (next === undefined) return;
    const request = this.#nextRequest();
    this.update({ isLoading: true });
    try {
      const page = await this.#page(view, next);
      if (request !== this.#latest) return;
      const known = new Set(this.state.items.map(({ id }) => id));
      const items = [...this.state.items, ...page.items.filter(({ id }) => !known.has(id))];
      this.update({ items, next: page.next ?? undefined });
    } catch {
      // The next scroll tries again.
    } finally {
      if (request === this.#latest) this.update({ isLoading: false });
    }
  }

  /** Searches for a text; empty: back to the list. */
  async search(query: string): Promise<void> {
    this.update({ query, hits: [], hitsNext: undefined });
    if (query.trim() === "") return await this.refresh();
    await this.#find(query, undefined);
  }

  /** Renames or files a conversation. Throws what the server refuses. */
  async change(id: string, change: UpdateConversation): Promise<void> {
    await this.#client.call("PATCH /v1/conversations/{conversation_id}", {
      path: { conversation_id: id },
      body: change,
    });
    await this.refresh();
  }

  /** Deletes a conversation, which can be restored. Throws what the server refuses. */
  async remove(id: string): Promise<void> {
    await this.#client.call("DELETE /v1/conversations/{conversation_id}", { path: { conversation_id: id } });
    this.update({
      items: this.state.items.filter((one) => one.id !== id),
      hits: this.state.hits.filter((one) => one.conversation_id !== id),
    });
  }

  /** Restores a deleted conversation. Throws if it is too late. */
  async restore(id: string): Promise<void> {
    await this.#client.call("POST /v1/conversations/{conversation_id}/restore", {
      path: { conversation_id: id },
    });
    await this.refresh();
  }

  async #page(view: ListView, cursor: string | undefined) {
    return await this.#client.call("GET /v1/conversations", {
      query: { limit: ROWS, ...filterOf(view), ...(cursor === undefined ? {} : { cursor }) },
    });
  }

  async #find(query: string, from: string | undefined): Promise<void> {
    const request = this.#nextRequest();
    this.update({ isLoading: true });
    try {
      let cursor = from;
      for (let pages = 0; pages < EMPTY_PAGES_MAX; pages += 1) {
        const page = await this.#client.call("GET /v1/search", {
          query: { q: query, limit: HITS, ...(cursor === undefined ? {} : { cursor }) },
        });
        // A newer request has replaced this one.
        if (request !== this.#latest) return;
        cursor = page.next ?? undefined;
        this.update({ hits: [...this.state.hits, ...page.items], hitsNext: cursor });
        if (cursor === undefined || page.items.length > 0) return;
      }
    } catch {
      // Loaded hits stay.
    } finally {
      if (request === this.#latest) this.update({ isLoading: false });
    }
  }

  #nextRequest(): number {
    this.#latest += 1;
    return this.#latest;
  }
}

function filterOf(view: ListView): { archived?: boolean; folder?: string; tag?: string } {
  const [kind, ...name] = view.split(":");
  switch (kind) {
    case "archived":
      return { archived: true };
    case "folder":
      return { folder: name.join(":") };
    case "tag":
      return { tag: name.join(":") };
    default:
      return {};
  }
}
