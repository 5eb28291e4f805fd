// The calls that a filter lets through, page by page, and how many there are. Framework-free. // R: U5

import type { CallInfo, CountInfo, Throughline } from "@throughline/client";
import { type Filter, queryOf, statesIn, withPart } from "./filter.ts";

export interface CallsState {
  filter: Filter;
  rows: readonly CallInfo[];
  /** Where the next page begins. */
  next: string | undefined;
  /** As many as the filter lets through. */
  total: number | undefined;
  /** What other states would show, with everything else as it is. */
  statuses: readonly CountInfo[];
  ofAnyStatus: number | undefined;
  /** Tools that would show something, with everything else as it is. */
  tools: readonly CountInfo[];
  isLoading: boolean;
  failure: unknown;
}

/** Of one page. */
export const ROWS = 100;
const NOTHING: CallsState = {
  filter: {},
  rows: [],
  next: undefined,
  total: undefined,
  statuses: [],
  ofAnyStatus: undefined,
  tools: [],
  isLoading: true,
  failure: undefined,
};

export class Calls {
  readonly #client: Throughline;
  readonly #now: () => number;
  readonly #listeners = new Set<() => void>();
  #state = NOTHING;
  /** Ends what is asked for something that is no longer shown. */
  #asking = new AbortController();
  #isAskingMore = false;

  constructor(client: Throughline, now: () => number = Date.now) {
    this.#client = client;
    this.#now = now;
  }

  readonly get = (): CallsState => this.#state;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Shows what this filter lets through, from the newest. What was there stays until the answer comes. */
  async show(filter: Filter): Promise<void> {
    this.#asking.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    this.#isAskingMore = false;
    this.#set({ filter, isLoading: true, failure: undefined });
    const now = this.#now();
    const count = (part: Filter) =>
      this.#client.call("GET /v1/history/counts", { query: queryOf(part, now), signal });
    try {
      const [page, anyStatus, anyTool] = await Promise.all([
        this.#client.call("GET /v1/history/calls", {
          query: { ...queryOf(filter, now), limit: ROWS },
          signal,
        }),
        count(withPart(filter, "status", undefined)),
        count(withPart(filter, "tool", undefined)),
      ]);
      if (signal.aborted) return;
      const states = statesIn(filter);
      const total = states.size === 0 ? anyStatus.total : countOf(anyStatus.by_status, states);
      this.#set({
        rows: page.items,
        next: page.next ?? undefined,
        total,
        statuses: anyStatus.by_status,
        ofAnyStatus: anyStatus.total,
        tools: anyTool.by_tool,
        isLoading: false,
      });
    } catch (failure) {
      if (!signal.aborted) this.#set({ failure, isLoading: false });
    }
  }

  async refresh(): Promise<void> {
    await this.show(this.#state.filter);
  }

  /** The next page, if there is one and it is not on its way. */
  async more(): Promise<void> {
    const { filter, next: cursor, isLoading } = this.#state;
    if (cursor === undefined || isLoading || this.#isAskingMore) return;
    this.#isAskingMore = true;
    const { signal } = this.#asking;
    try {
      const query = { ...queryOf(filter, this.#now()), limit: ROWS, cursor };
      const page = await this.#client.call("GET /v1/history/calls", { query, signal });
      if (signal.aborted) return;
      this.#set({ rows: [...this.#state.rows, ...page.items], next: page.next ?? undefined });
    } catch (failure) {
      // Asked again only when somebody wants it: a server that refuses is not asked for ever.
      if (!signal.aborted) this.#set({ failure, next: undefined });
    } finally {
      if (!signal.aborted) this.#isAskingMore = false;
    }
  }

  #set(change: Partial<CallsState>): void {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener();
  }
}

/** How many those of these names are together. */
export function countOf(counts: readonly CountInfo[], names: ReadonlySet<string>): number {
  return counts.reduce((sum, { name, count }) => sum + (names.has(name) ? count : 0), 0);
}
