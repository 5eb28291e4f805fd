// Time ranges of the metrics, their requests, and links to the history. Framework-free.

import { ApiError, type MetricsInfo, type ThresholdInfo, type Throughline } from "@throughline/client";
import { addressOf, FAILED, type Filter, type Span } from "../history/model/filter.ts";
import { type TurnFilter, turnAddressOf } from "../history/model/turn-filter.ts";
import { grouped } from "../i18n/en.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Length of a range. `today` has no fixed length, unlike a day. */
export type Length = Exclude<Span, "today">;

/** A time range with the length of its parts. Its name is that of the same range in the history. */
export interface Range {
  readonly span: Length;
  readonly partMs: number;
  readonly parts: number;
}

const HOUR: Range = { span: "hour", partMs: MINUTE_MS, parts: 60 };
const DAY: Range = { span: "day", partMs: HOUR_MS / 2, parts: 48 };

export const RANGES: readonly Range[] = [
  HOUR,
  DAY,
  { span: "week", partMs: 3 * HOUR_MS, parts: 56 },
  { span: "month", partMs: 12 * HOUR_MS, parts: 60 },
];

/** The range in the query of an address; `undefined`: none or unknown. */
export function rangeOf(search: string): Range | undefined {
  const chosen = new URLSearchParams(search).get("range");
  return RANGES.find(({ span }) => span === chosen);
}

/**
 * The default range with data: an hour for a new server, else the shortest range from a day on with a turn in it. A day, if
 * there is no turn at all.
 */
export async function rangeWithData(client: Throughline, now: number, signal: AbortSignal): Promise<Range> {
  const newest = async (until: number): Promise<number | undefined> => {
    const query = { until, limit: 1 };
    const { items } = await client.call("GET /v1/history/turns", { query, signal });
    return items[0]?.started_at;
  };
  const last = await newest(now + 1);
  if (last === undefined) return DAY;
  if ((await newest(now - HOUR_MS)) === undefined) return HOUR;
  const spans = RANGES.filter((range) => range !== HOUR);
  return spans.find(({ partMs, parts }) => now - last < partMs * parts) ?? spans.at(-1) ?? DAY;
}

/** Name of a threshold of the server. */
export type ThresholdName =
  | "streaming_tool_detection_rate"
  | "streaming_tool_execution_latency_p50"
  | "streaming_tool_execution_latency_p95"
  | "streaming_ui_jank_frames"
  | "streaming_rollback_count"
  | "feedback_positive_rate";

export type Thresholds = ReadonlyMap<string, ThresholdInfo>;

/** Thresholds of the whole server; only admins get them. */
export async function thresholdsOf(client: Throughline, signal: AbortSignal): Promise<Thresholds> {
  try {
    const { items } = await client.call("GET /v1/metrics/thresholds", { signal });
    return new Map(items.map((row) => [row.name, row]));
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return new Map();
    throw error;
  }
}

export function thresholdOf(thresholds: Thresholds, name: ThresholdName): ThresholdInfo | undefined {
  return thresholds.get(name);
}

export function addressOfRange({ span }: Range): string {
  return `/stats?range=${span}`;
}

/** The request for a range. Parts are aligned, so that a chart moves on instead of changing its shape. */
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

/** Address of the calls of a range in the history. */
export function callsOf({ span }: Range, filter: Filter = {}): string {
  return addressOf({ filter: { ...filter, since: span } });
}

/** Address of the turns of a range in the history. */
export function turnsOf({ span }: Range, filter: TurnFilter = {}): string {
  return turnAddressOf({ filter: { ...filter, since: span } });
}

/** Address of the failed calls of a range. */
export function failedOf(range: Range): string {
  return callsOf(range, { status: FAILED.join(",") });
}

/** A rate, `4.2 %`; a dash if there were no calls. */
export function percent(rate: number | null | undefined): string {
  if (rate == null) return "–";
  return `${(rate * 100).toFixed(rate > 0 && rate < 0.1 ? 1 : 0)} %`;
}

/** `148`, `9.4`. */
export function rounded(value: number): string {
  return value.toFixed(value < 10 ? 1 : 0);
}

/** `512`, `12.4 k`, `3.1 M`. */
export function short(value: number): string {
  if (value < 10_000) return grouped(value);
  return value < 1_000_000 ? `${(value / 1_000).toFixed(1)} k` : `${(value / 1_000_000).toFixed(1)} M`;
}
