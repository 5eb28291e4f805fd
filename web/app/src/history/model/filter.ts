// Filter and open call of the list of calls, as an address that can be linked to. Framework-free.

import type { OperationInput } from "@throughline/client";

/** Path of the calls. */
export const CALLS = "/history/calls";

export const SPANS = ["hour", "today", "day", "week", "month"] as const;
export type Span = (typeof SPANS)[number];

/** A filter; absent parts match everything. */
export interface Filter {
  readonly q?: string;
  readonly tool?: string;
  /** One state, or several separated by commas. */
  readonly status?: string;
  readonly since?: Span;
  /** `1`: only calls that ran longer than a second. */
  readonly slow?: string;
  readonly conversation_id?: string;
  readonly turn_id?: string;
}

export interface CallsLocation {
  readonly filter: Filter;
  /** Id of the call whose details are open. */
  readonly call?: string;
}

export type CallsQuery = NonNullable<OperationInput<"GET /v1/history/counts">["query"]>;

const TEXTS = ["q", "tool", "status", "slow", "conversation_id", "turn_id"] as const;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Duration above which a call is slow. */
const SLOW_MS = 1_000;

/** Parses the query of an address. Unknown parts are ignored. */
export function callsLocationOf(search: string): CallsLocation {
  const params = new URLSearchParams(search);
  const texts = TEXTS.map((name) => [name, params.get(name)] as const).filter(([, value]) => value);
  const since = SPANS.find((span) => span === params.get("since"));
  const call = params.get("call");
  return {
    filter: { ...Object.fromEntries(texts), ...(since === undefined ? {} : { since }) },
    ...(call ? { call } : {}),
  };
}

/** Address of a location: the inverse of {@link callsLocationOf}. */
export function addressOf({ filter, call }: CallsLocation): string {
  const params = new URLSearchParams();
  for (const name of [...TEXTS, "since"] as const) {
    const value = filter[name];
    if (value) params.set(name, value);
  }
  if (call) params.set("call", call);
  return params.size === 0 ? CALLS : `${CALLS}?${params}`;
}

/** States that the server counts as `failed`. */
export const FAILED: readonly string[] = ["error", "timed_out", "unknown"];

/** Selected states; none = all. */
export function statesIn({ status = "" }: Filter): ReadonlySet<string> {
  return new Set(
    status
      .split(",")
      .map((one) => one.trim())
      .filter(Boolean),
  );
}

/** True if all failures are selected. */
export function isOfFailed(filter: Filter): boolean {
  const states = statesIn(filter);
  return states.size === FAILED.length && FAILED.every((state) => states.has(state));
}

/** The query in the server's format. */
export function queryOf({ since, slow, status, ...rest }: Filter, now: number): CallsQuery {
  const states = [...statesIn({ status: status ?? "" })].join(",");
  return {
    ...rest,
    ...(states === "" ? {} : { status: states }),
    ...(since === undefined ? {} : { from: beginOf(since, now) }),
    ...(slow === undefined ? {} : { longer_than_ms: SLOW_MS }),
  };
}

export function beginOf(span: Span, now: number): number {
  switch (span) {
    case "hour":
      return now - HOUR_MS;
    case "today":
      return new Date(now).setHours(0, 0, 0, 0);
    case "day":
      return now - DAY_MS;
    case "week":
      return now - 7 * DAY_MS;
    case "month":
      return now - 30 * DAY_MS;
  }
}

/** The filter with one part changed; `undefined` removes it. */
export function withPart<N extends keyof Filter>(filter: Filter, name: N, value: Filter[N]): Filter {
  const { [name]: _, ...rest } = filter;
  return value === undefined ? rest : { ...rest, [name]: value };
}

export function isEverything(filter: object): boolean {
  return Object.keys(filter).length === 0;
}
