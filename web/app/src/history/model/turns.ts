// The turns that match a filter, page by page, with their counts. Framework-free.

import type { CountInfo, Throughline, TurnInfo } from "@throughline/client";
import type { Tone } from "../../shared/call-card/tone.ts";
import { statesIn } from "./filter.ts";
import { filledPage, ROWS, Rows, type RowsState } from "./rows.ts";
import { type TurnFilter, turnsQueryOf, withTurnPart } from "./turn-filter.ts";

export interface TurnsState extends RowsState<TurnFilter, TurnInfo> {
  /** Number of matches; for a text search, of those found so far. */
  total: number | undefined;
  /** Counts for other states, with the rest of the filter except the text unchanged. */
  statuses: readonly CountInfo[];
  ofAnyStatus: number | undefined;
  /** Counts for models and agents, whichever are selected, and whatever the text. */
  models: readonly CountInfo[];
  agents: readonly CountInfo[];
  /** Ids of running turns with open approvals. */
  asking: ReadonlySet<string>;
}

/** Page size of open approvals. */
const QUESTIONS_MAX = 200;

const NOTHING: TurnsState = {
  filter: {},
  rows: [],
  next: undefined,
  total: undefined,
  statuses: [],
  ofAnyStatus: undefined,
  models: [],
  agents: [],
  asking: new Set(),
  isLoading: true,
  failure: undefined,
};

export class Turns extends Rows<TurnFilter, TurnInfo, TurnsState> {
  readonly #client: Throughline;
  readonly #now: () => number;

  constructor(client: Throughline, now: () => number = Date.now) {
    super(NOTHING);
    this.#client = client;
    this.#now = now;
  }

  protected override async first(filter: TurnFilter, signal: AbortSignal): Promise<Partial<TurnsState>> {
    const now = this.#now();
    const count = (part: TurnFilter) => {
      const query = turnsQueryOf(withTurnPart(part, "q", undefined), now);
      return this.#client.call("GET /v1/history/turn-counts", { query, signal });
    };
    const others = withTurnPart(withTurnPart(filter, "model", undefined), "agent", undefined);
    const [page, anyStatus, anyName] = await Promise.all([
      this.#page(filter, signal),
      count(withTurnPart(filter, "status", undefined)),
      count(others),
    ]);
    const isRunning = page.items.some(({ status }) => status === "running");
    const asking = isRunning ? await this.#asking(signal) : new Set<string>();
    const states = statesIn(filter);
    const chosen = anyStatus.by_status.filter(({ name }) => states.has(name));
    const counted = states.size === 0 ? anyStatus.total : chosen.reduce((sum, { count }) => sum + count, 0);
    const found = page.next == null ? page.items.length : undefined;
    return {
      rows: page.items,
      next: page.next ?? undefined,
      total: filter.q === undefined ? counted : found,
      statuses: anyStatus.by_status,
      ofAnyStatus: anyStatus.total,
      models: anyName.by_model,
      agents: anyName.by_agent,
      asking,
    };
  }

  /** A turn that waits has the state `running`; the open approvals tell them apart. */
  async #asking(signal: AbortSignal): Promise<ReadonlySet<string>> {
    const query = { status: "awaiting_approval", limit: QUESTIONS_MAX };
    const { items } = await this.#client.call("GET /v1/history/calls", { query, signal });
    return new Set(items.map(({ turn_id }) => turn_id));
  }

  protected override page(filter: TurnFilter, cursor: string, signal: AbortSignal) {
    return this.#page({ ...filter, cursor }, signal);
  }

  #page({ cursor, ...filter }: TurnFilter & { cursor?: string }, signal: AbortSignal) {
    const query = { ...turnsQueryOf(filter, this.#now()), limit: ROWS };
    return filledPage(cursor, (after) =>
      this.#client.call("GET /v1/history/turns", { query: { ...query, ...after }, signal }),
    );
  }
}

export function turnTone(status: string): Tone {
  switch (status) {
    case "running":
      return "running";
    case "completed":
      return "good";
    case "error":
    case "interrupted":
      return "bad";
    case "asks":
    case "length":
    case "limit":
      return "waiting";
    default:
      return "none";
  }
}

/** An entry of the list: a day, or a turn. */
export type ListItem = { day: number } | { turn: TurnInfo };

/** The turns with days before them; a day is its first millisecond. */
export function itemsOf(turns: readonly TurnInfo[]): ListItem[] {
  const items: ListItem[] = [];
  let last: number | undefined;
  for (const turn of turns) {
    const day = new Date(turn.started_at).setHours(0, 0, 0, 0);
    if (day !== last) items.push({ day });
    last = day;
    items.push({ turn });
  }
  return items;
}
