// A filtered list, loaded page by page. Framework-free.

import { Store } from "../../store.ts";

export interface RowsState<F, R> {
  filter: F;
  rows: readonly R[];
  /** Cursor of the next page. */
  next: string | undefined;
  isLoading: boolean;
  failure: unknown;
}

interface RowsPage<R> {
  items: readonly R[];
  next?: string | null;
}

/** Loads pages until one has a row or the end is reached: a search page may time out empty. */
export async function filledPage<P extends RowsPage<unknown>>(
  cursor: string | undefined,
  fetchPage: (after: { cursor?: string }) => Promise<P>,
): Promise<P> {
  let page = await fetchPage(cursor === undefined ? {} : { cursor });
  while (page.items.length === 0 && page.next != null) page = await fetchPage({ cursor: page.next });
  return page;
}

/** Rows per page. */
export const ROWS = 100;

export abstract class Rows<F, R, S extends RowsState<F, R>> extends Store<S> {
  /** Aborts requests for a list that is no longer shown. */
  #request = new AbortController();
  #isLoadingMore = false;

  /** The first page, with further data about the list. */
  protected abstract first(filter: F, signal: AbortSignal): Promise<Partial<S>>;
  protected abstract page(filter: F, cursor: string, signal: AbortSignal): Promise<RowsPage<R>>;

  /** Shows the rows that match this filter, newest first. Old rows stay until the response. */
  async show(filter: F): Promise<void> {
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    this.#isLoadingMore = false;
    this.#set({ filter, isLoading: true, failure: undefined });
    try {
      const found = await this.first(filter, signal);
      if (!signal.aborted) this.#set({ isLoading: false }, found);
    } catch (failure) {
      if (!signal.aborted) this.#set({ failure, isLoading: false });
    }
  }

  async refresh(): Promise<void> {
    await this.show(this.state.filter);
  }

  /** Loads the next page, if there is one and it is not loading. */
  async more(): Promise<void> {
    const { filter, next: cursor, isLoading } = this.state;
    if (cursor === undefined || isLoading || this.#isLoadingMore) return;
    this.#isLoadingMore = true;
    const { signal } = this.#request;
    try {
      const page = await this.page(filter, cursor, signal);
      if (signal.aborted) return;
      this.#set({ rows: [...this.state.rows, ...page.items], next: page.next ?? undefined });
    } catch (failure) {
      // Not retried automatically: a server that refuses would get requests forever.
      if (!signal.aborted) this.#set({ failure, next: undefined });
    } finally {
      if (!signal.aborted) this.#isLoadingMore = false;
    }
  }

  #set(change: Partial<RowsState<F, R>>, more: Partial<S> = {}): void {
    this.replace({ ...this.state, ...change, ...more });
  }
}
