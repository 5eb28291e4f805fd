// Filter, open turn and compared turns of the list of turns, as an address. Framework-free.

import type { OperationInput } from "@throughline/client";
import { beginOf, SPANS, type Span, statesIn } from "./filter.ts";

/** A filter; absent parts match everything. */
export interface TurnFilter {
  readonly q?: string;
  /** One status, or several separated by commas. */
  readonly status?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly conversation_id?: string;
  readonly since?: Span;
}

export interface TurnsLocation {
  readonly filter: TurnFilter;
  /** Id of the open turn. */
  readonly turn?: string;
  /** Ids of two compared turns. */
  readonly compare?: readonly [string, string];
}

export type TurnsQuery = NonNullable<OperationInput<"GET /v1/history/turns">["query"]>;

const TEXTS = ["q", "status", "agent", "model", "conversation_id"] as const;

/** Parses the query of an address. Unknown parts are ignored. */
export function turnsLocationOf(search: string): TurnsLocation {
  const params = new URLSearchParams(search);
  const texts = TEXTS.map((name) => [name, params.get(name)] as const).filter(([, value]) => value);
  const since = SPANS.find((span) => span === params.get("since"));
  const turn = params.get("turn");
  const [one, other] = (params.get("compare") ?? "").split(",");
  return {
    filter: { ...Object.fromEntries(texts), ...(since === undefined ? {} : { since }) },
    ...(turn ? { turn } : {}),
    ...(one && other ? { compare: [one, other] } : {}),
  };
}

/** Address of a location: the inverse of {@link turnsLocationOf}. */
export function turnAddressOf({ filter, turn, compare }: TurnsLocation): string {
  const params = new URLSearchParams();
  for (const name of [...TEXTS, "since"] as const) {
    const value = filter[name];
    if (value) params.set(name, value);
  }
  if (turn) params.set("turn", turn);
  if (compare) params.set("compare", compare.join(","));
  return params.size === 0 ? "/history" : `/history?${params}`;
}

/** The query in the server's format. */
export function turnsQueryOf({ since, status, ...rest }: TurnFilter, now: number): TurnsQuery {
  const states = [...statesIn({ status: status ?? "" })].join(",");
  return {
    ...rest,
    ...(states === "" ? {} : { status: states }),
    ...(since === undefined ? {} : { from: beginOf(since, now) }),
  };
}

/** The filter with one part changed; `undefined` removes it. */
export function withTurnPart<N extends keyof TurnFilter>(
  filter: TurnFilter,
  name: N,
  value: TurnFilter[N],
): TurnFilter {
  const { [name]: _, ...rest } = filter;
  return value === undefined ? rest : { ...rest, [name]: value };
}
