// Which turns are shown, which one is open, and which two are compared. The address has all of it. Framework-free.

import type { OperationInput } from "@throughline/client";
import { beginOf, SPANS, type Span, statesIn } from "./filter.ts";

/** What is absent matches all. */
export interface TurnFilter {
  readonly q?: string;
  /** One status, or several with commas between. */
  readonly status?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly conversation_id?: string;
  readonly since?: Span;
}

export interface TurnPlace {
  readonly filter: TurnFilter;
  /** The turn that is open. */
  readonly turn?: string;
  /** Two turns next to each other. */
  readonly compare?: readonly [string, string];
}

export type TurnsQuery = NonNullable<OperationInput<"GET /v1/history/turns">["query"]>;

const TEXTS = ["q", "status", "agent", "model", "conversation_id"] as const;

/** What `?…` says. What it does not know is left out. */
export function turnPlaceOf(search: string): TurnPlace {
  const said = new URLSearchParams(search);
  const texts = TEXTS.map((name) => [name, said.get(name)] as const).filter(([, value]) => value);
  const since = SPANS.find((span) => span === said.get("since"));
  const turn = said.get("turn");
  const [one, other] = (said.get("compare") ?? "").split(",");
  return {
    filter: { ...Object.fromEntries(texts), ...(since === undefined ? {} : { since }) },
    ...(turn ? { turn } : {}),
    ...(one && other ? { compare: [one, other] } : {}),
  };
}

/** The address of a place: the opposite of {@link turnPlaceOf}. */
export function turnAddressOf({ filter, turn, compare }: TurnPlace): string {
  const said = new URLSearchParams();
  for (const name of [...TEXTS, "since"] as const) {
    const value = filter[name];
    if (value) said.set(name, value);
  }
  if (turn) said.set("turn", turn);
  if (compare) said.set("compare", compare.join(","));
  return said.size === 0 ? "/history" : `/history?${said}`;
}

/** As the server is asked. */
export function turnsQueryOf({ since, status, ...rest }: TurnFilter, now: number): TurnsQuery {
  const states = [...statesIn({ status: status ?? "" })].join(",");
  return {
    ...rest,
    ...(states === "" ? {} : { status: states }),
    ...(since === undefined ? {} : { from: beginOf(since, now) }),
  };
}

/** The filter with one part changed; `undefined` takes it out. */
export function withTurnPart<N extends keyof TurnFilter>(
  filter: TurnFilter,
  name: N,
  value: TurnFilter[N],
): TurnFilter {
  const { [name]: _, ...rest } = filter;
  return value === undefined ? rest : { ...rest, [name]: value };
}
