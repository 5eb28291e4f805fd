// The calls that match a filter, page by page, with their counts. Framework-free.

import type { CallInfo, CountInfo, Throughline } from "@throughline/client";
import { type Filter, queryOf, statesIn, withPart } from "./filter.ts";
import { filledPage, ROWS, Rows, type RowsState } from "./rows.ts";

export interface CallsState extends RowsState<Filter, CallInfo> {
  /** Number of matches; `undefined` = too many to count with a text search. */
  total: number | undefined;
  /** Counts for other states, with the rest of the filter unchanged. */
  statuses: readonly CountInfo[];
  ofAnyStatus: number | undefined;
  /** Counts for tools, with the rest of the filter unchanged. */
  tools: readonly CountInfo[];
}

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

export class Calls extends Rows<Filter, CallInfo, CallsState> {
  readonly #client: Throughline;
  readonly #now: () => number;

  constructor(client: Throughline, now: () => number = Date.now) {
    super(NOTHING);
    this.#client = client;
    this.#now = now;
  }

  protected override async first(filter: Filter, signal: AbortSignal): Promise<Partial<CallsState>> {
    const now = this.#now();
    const count = (part: Filter) =>
      this.#client.call("GET /v1/history/counts", { query: queryOf(part, now), signal });
    const [page, anyStatus, anyTool] = await Promise.all([
      this.#page(filter, undefined, signal),
      count(withPart(filter, "status", undefined)),
      count(withPart(filter, "tool", undefined)),
    ]);
    const states = statesIn(filter);
    const counted = states.size === 0 ? anyStatus.total : countOf(anyStatus.by_status, states);
    return {
      rows: page.items,
      next: page.next ?? undefined,
      total: anyStatus.partial ? undefined : counted,
      statuses: anyStatus.by_status,
      ofAnyStatus: anyStatus.total,
      tools: anyTool.by_tool,
    };
  }

  protected override page(filter: Filter, cursor: string, signal: AbortSignal) {
    return this.#page(filter, cursor, signal);
  }

  #page(filter: Filter, cursor: string | undefined, signal: AbortSignal) {
    const query = { ...queryOf(filter, this.#now()), limit: ROWS };
    return filledPage(cursor, (after) =>
      this.#client.call("GET /v1/history/calls", { query: { ...query, ...after }, signal }),
    );
  }
}

/** Sum of the counts with these names. */
export function countOf(counts: readonly CountInfo[], names: ReadonlySet<string>): number {
  return counts.reduce((sum, { name, count }) => sum + (names.has(name) ? count : 0), 0);
}
