// Of which time metrics are shown, how they are asked for, and where each of them leads. Framework-free. // R: U5

import type { MetricsInfo, Throughline } from "@throughline/client";
import { addressOf, FAILED, type Filter, type Span } from "../history/model/filter.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** How long a time is. A day is as long at noon as at midnight, which `today` is not. */
export type Length = Exclude<Span, "today">;

/** A time, and the parts that it is drawn in. Its name is that of the same time in the history. */
export interface Range {
  readonly span: Length;
  readonly partMs: number;
  readonly parts: number;
}

const DAY: Range = { span: "day", partMs: HOUR_MS / 2, parts: 48 };

export const RANGES: readonly Range[] = [
  { span: "hour", partMs: MINUTE_MS, parts: 60 },
  DAY,
  { span: "week", partMs: 3 * HOUR_MS, parts: 56 },
  { span: "month", partMs: 12 * HOUR_MS, parts: 60 },
];

/** What `?range=…` says; a day, if it says nothing. */
export function rangeOf(search: string): Range {
  const said = new URLSearchParams(search).get("range");
  return RANGES.find(({ span }) => span === said) ?? DAY;
}

export function addressOfRange({ span }: Range): string {
  return `/stats?range=${span}`;
}

/** Parts begin at the same times whenever one looks, so that a chart moves on and does not tremble. */
export function ask(
  client: Throughline,
  { partMs, parts }: Range,
  now: number,
  signal: AbortSignal,
): Promise<MetricsInfo> {
  const until = Math.ceil((now + 1) / partMs) * partMs;
  const query = { from: until - partMs * parts, until, buckets: parts };
  return client.call("GET /v1/history/metrics", { query, signal });
}

/** The calls of a time in the history, so far as a filter lets them through. */
export function callsOf({ span }: Range, filter: Filter = {}): string {
  return addressOf({ filter: { ...filter, since: span } });
}

/** The calls that failed, in whatever way. */
export function failedOf(range: Range): string {
  return callsOf(range, { status: FAILED.join(",") });
}

/** `4.2 %`; what nobody has tried yet has no rate. */
export function percent(rate: number | null | undefined): string {
  if (rate == null) return "–";
  return `${(rate * 100).toFixed(rate > 0 && rate < 0.1 ? 1 : 0)} %`;
}

/** `148`, `9.4`. */
export function rounded(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0);
}
