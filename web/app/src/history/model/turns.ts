// The turns that a filter lets through, page by page, and how many there are. Framework-free.

import type { CountInfo, Throughline, TurnInfo } from "@throughline/client";
import type { Look } from "../../chat/card/look.ts";
import { statesIn } from "./filter.ts";
import { filledPage, ROWS, Rows, type RowsState } from "./rows.ts";
import { type TurnFilter, turnsQueryOf, withTurnPart } from "./turn-filter.ts";

export interface TurnsState extends RowsState<TurnFilter, TurnInfo> {
  /** As many as the filter lets through; of a text that is looked for only those that have been found. */
  total: number | undefined;
  /** What other states would show, with everything else but the text as it is. */
  statuses: readonly CountInfo[];
  ofAnyStatus: number | undefined;
  /** Models and agents that would show something, whichever of them are chosen, and whatever the text. */
  models: readonly CountInfo[];
  agents: readonly CountInfo[];
  /** Turns that run and wait for somebody, by their ids. */
  asking: ReadonlySet<string>;
}

/** As many open questions as one page has. */
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

  /** The state of a turn is that it runs; whether it waits for somebody is known of its calls. */
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

export function turnLook(status: string): Look {
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

/** What stands in the list: a day, or a turn of it. */
export type ListItem = { day: number } | { turn: TurnInfo };

/** The turns with the days before them; a day is its first millisecond. */
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
