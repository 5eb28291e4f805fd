import type { MetricsInfo, NamedTurnsMetrics, ThresholdInfo, ToolMetrics } from "@throughline/client";
import { TriangleAlert } from "lucide-react";
import { type ReactNode, useEffect, useId, useMemo, useSyncExternalStore } from "react";
import { addressOf } from "../history/model/filter.ts";
import { useWords } from "../i18n/use.ts";
import { frames, language } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { Lines, type Series } from "../shared/charts/lines.tsx";
import { duration } from "../shared/format.ts";
import { Link } from "../shared/link.tsx";
import { onPath, search } from "../shared/router.ts";
import { Failure } from "../ui/failure.tsx";
import { useRequest } from "../ui/use-request.ts";
import {
  addressOfRange,
  ask,
  callsOf,
  failedOf,
  percent,
  RANGES,
  type Range,
  rangeOf,
  rangeWithData,
  rounded,
  short,
  type ThresholdName,
  type Thresholds,
  thresholdOf,
  thresholdsOf,
  turnsOf,
} from "./model.ts";
import { useMetricsWords } from "./words.ts";

/** Speed and reliability of the server. Each figure links to its calls. */
export default function MetricsView() {
  const words = useWords();
  const texts = useMetricsWords();
  const client = useClient();
  const chosen = rangeOf(useSyncExternalStore(onPath, search));
  const isChosen = chosen !== undefined;
  const found = useRequest(
    useMemo(
      () => (isChosen ? undefined : (signal) => rangeWithData(client, Date.now(), signal)),
      [client, isChosen],
    ),
  );
  const range = chosen ?? found.value;
  const request = useMetrics(range);
  const { value, again } = request;
  const error = request.error ?? (isChosen ? undefined : found.error);
  return (
    <>
      <header className="flex min-h-13 flex-none flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1.5 min-[720px]:px-6">
        <h1 className="text-[15px] font-semibold">{words.metrics}</h1>
        <nav aria-label={texts.range} className="segments ml-auto">
          {RANGES.map((one) => (
            <Link
              key={one.span}
              href={addressOfRange(one)}
              aria-current={one === range ? "true" : undefined}
              title={texts.spans[one.span][1]}
            >
              {texts.spans[one.span][0]}
            </Link>
          ))}
        </nav>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="metrics" tabIndex={0} aria-label={words.metrics}>
        {error !== undefined && <Failure error={error} again={range ? again : found.again} />}
        {value && range ? (
          <Known metrics={value.metrics} thresholds={value.thresholds} range={range} />
        ) : (
          error === undefined && <p role="status">{words.loading}</p>
        )}
      </section>
    </>
  );
}

/** Interval of refreshes while the page is visible. */
const AGAIN_MS = 15_000;

/** Metrics of a range, refreshed in the background. Old values of the same range stay until the response. */
function useMetrics(range: Range | undefined) {
  const client = useClient();
  const request = useRequest(
    useMemo(() => {
      if (range === undefined) return undefined;
      return async (signal: AbortSignal) => {
        const [metrics, thresholds] = await Promise.all([
          ask(client, range, Date.now(), signal),
          thresholdsOf(client, signal),
        ]);
        return { metrics, thresholds };
      };
    }, [client, range]),
  );
  const { value, again } = request;
  useEffect(() => {
    const refresh = (): void => {
      if (document.visibilityState === "visible") again();
    };
    const timer = setInterval(refresh, AGAIN_MS);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [again]);
  return { ...request, value: value?.metrics.bucket_ms === range?.partMs ? value : undefined };
}

interface KnownProps {
  metrics: MetricsInfo;
  thresholds: Thresholds;
  range: Range;
}

function Known({ metrics, thresholds, range }: KnownProps) {
  const texts = useMetricsWords();
  const { turns, calls, buckets } = metrics;
  const first = turns.first_token_ms;
  const took = calls.duration_ms;
  const all = callsOf(range);
  const limitOf = (name: ThresholdName) => thresholdOf(thresholds, name);
  const [slow50, slow95] = [
    limitOf("streaming_tool_execution_latency_p50"),
    limitOf("streaming_tool_execution_latency_p95"),
  ];
  const detection = limitOf("streaming_tool_detection_rate");
  const rollbacks = limitOf("streaming_rollback_count");
  const liked = limitOf("feedback_positive_rate");
  const [late = 0, watchedMs = 0] = useSyncExternalStore(frames.subscribe, frames.get).split("/").map(Number);
  const series = (of: (part: MetricsInfo["buckets"][number]) => number | null | undefined): Series =>
    buckets.map(of);
  return (
    <>
      {(metrics.turns_cut || metrics.calls_cut) && <p role="note">{texts.cut(metrics.samples_max)}</p>}
      <ul className="tiles">
        <Tile
          name={texts.firstToken}
          href={all}
          metrics={metrics}
          format={duration}
          figures={[
            [texts.p50, first.p50],
            [texts.p95, first.p95],
          ]}
          series={[
            series(({ turns }) => turns.first_token_ms.p50),
            series(({ turns }) => turns.first_token_ms.p95),
          ]}
        />
        <Tile
          name={texts.speed}
          href={all}
          metrics={metrics}
          format={rounded}
          figures={[[texts.p50, turns.tokens_per_second.p50]]}
          series={[series(({ turns }) => turns.tokens_per_second.p50)]}
        />
        <Tile
          name={texts.took}
          href={callsOf(range, { slow: "1" })}
          metrics={metrics}
          format={duration}
          figures={[
            [texts.p50, took.p50],
            [texts.p95, took.p95],
          ]}
          series={[
            series(({ calls }) => calls.duration_ms.p50),
            series(({ calls }) => calls.duration_ms.p95),
          ]}
          limits={[slow50, slow95].map((threshold) => threshold && threshold.limit * 1_000)}
          thresholds={[slow50, slow95]}
        />
        <Tile
          name={texts.errorRate}
          href={failedOf(range)}
          metrics={metrics}
          format={percent}
          figures={[[texts.failedOf(calls.failed, calls.finished), calls.error_rate]]}
          series={[series(({ calls }) => calls.error_rate)]}
        />
        <Tile
          name={texts.calls}
          href={all}
          metrics={metrics}
          format={String}
          figures={[
            [texts.calls, calls.total],
            [texts.turns, turns.total],
          ]}
          series={[series(({ calls }) => calls.total), series(({ turns }) => turns.total)]}
        />
        <Tile
          name={texts.tokens}
          href={turnsOf(range)}
          metrics={metrics}
          format={short}
          figures={[
            [texts.tokensIn, turns.input_tokens],
            [texts.tokensOut, turns.output_tokens],
          ]}
          series={[series(({ turns }) => turns.input_tokens), series(({ turns }) => turns.output_tokens)]}
        />
      </ul>
      <ul className="tiles small">
        {detection && (
          <Tile
            name={texts.detectionRate}
            format={percent}
            figures={[[texts.ofCalls(detection.samples), detection.value]]}
            thresholds={[detection]}
          />
        )}
        {rollbacks && (
          <Tile
            name={texts.rollbacks}
            format={rounded}
            figures={[[texts.perMinute, rollbacks.value]]}
            thresholds={[rollbacks]}
          />
        )}
        {liked && liked.value != null && (
          <Tile
            name={texts.positiveRate}
            format={percent}
            figures={[[texts.ofRatings(liked.samples), liked.value]]}
            thresholds={[liked]}
          />
        )}
        <Tile
          name={texts.waiting}
          href={addressOf({ filter: { status: "awaiting_approval" } })}
          format={String}
          figures={[[texts.now, metrics.approvals_waiting]]}
        />
        <Tile
          name={texts.lateFrames}
          format={String}
          figures={[[texts.framesIn(duration(watchedMs)), late]]}
          thresholds={[limitOf("streaming_ui_jank_frames")]}
        />
      </ul>
      <Named
        title={texts.byModel}
        head={texts.model}
        rows={metrics.models}
        leads={(model) => turnsOf(range, { model })}
      />
      <Named
        title={texts.byAgent}
        head={texts.agent}
        rows={metrics.agents}
        leads={(agent) => turnsOf(range, { agent })}
      />
      <Tools metrics={metrics} range={range} />
      <Errors metrics={metrics} range={range} />
      <Conversations metrics={metrics} range={range} />
      <Parts metrics={metrics} />
    </>
  );
}

interface TileProps {
  name: string;
  /** Link to the calls of the figure. */
  href?: string;
  format(value: number): string;
  /** Figures with their labels. */
  figures: readonly (readonly [string, number | null | undefined])[];
  metrics?: MetricsInfo;
  series?: readonly Series[];
  /** Upper limits of the series, in their unit. */
  limits?: readonly (number | undefined)[];
  /** Thresholds that the server watches; crossing one is an alarm. */
  thresholds?: readonly (ThresholdInfo | undefined)[];
}

function Tile({ name, href, format, figures, metrics, series, limits, thresholds = [] }: TileProps) {
  const texts = useMetricsWords();
  const id = useId();
  return (
    <li className="tile" aria-labelledby={id} data-alarm={thresholds.some((row) => row?.holds === false)}>
      <h2 id={id}>{href === undefined ? name : <Link href={href}>{name}</Link>}</h2>
      <dl>
        {figures.map(([what, value], number) => (
          <div key={what} data-line={series && figures.length > 1 ? number : undefined}>
            <dt>{what}</dt>
            <dd>{value == null ? "–" : format(value)}</dd>
          </div>
        ))}
      </dl>
      {thresholds.map((row) => row && <Threshold key={row.name} row={row} />)}
      {metrics && series && (
        <Lines
          label={texts.chartOf(name)}
          series={series}
          limits={limits}
          format={format}
          from={moment(metrics.from, metrics)}
          until={texts.now}
        />
      )}
    </li>
  );
}

/** A threshold, and whether the whole server currently crosses it. */
function Threshold({ row }: { row: ThresholdInfo }) {
  const texts = useMetricsWords();
  const amount =
    row.unit === "ratio" ? percent(row.limit) : row.unit === "s" ? duration(row.limit * 1_000) : row.limit;
  const limit = texts.limit(
    row.name.match(/p\d+$/)?.[0],
    row.side === "at_least",
    String(amount),
    row.unit === "per_minute",
  );
  return (
    <p className="threshold" data-holds={row.holds ?? undefined}>
      {row.holds === false && <TriangleAlert aria-hidden size={13} />}
      {row.holds === false ? texts.alarm(limit) : limit}
    </p>
  );
}

interface NamedProps {
  title: string;
  head: string;
  rows: readonly NamedTurnsMetrics[];
  leads(name: string): string;
}

/** Turns by model or by agent. */
function Named({ title, head, rows, leads }: NamedProps) {
  const texts = useMetricsWords();
  if (rows.length === 0) return null;
  const heads = [
    head,
    texts.turns,
    texts.failed,
    texts.tokensIn,
    texts.tokensOut,
    texts.firstToken,
    texts.speed,
  ];
  return (
    <Table title={title} heads={heads}>
      {rows.map((row) => (
        <tr key={row.name}>
          <th scope="row" title={row.name}>
            <Link href={leads(row.name)}>{row.name}</Link>
          </th>
          <Figures
            values={[
              row.total,
              row.failed,
              short(row.input_tokens),
              short(row.output_tokens),
              format(row.first_token_ms.p50),
              format(row.tokens_per_second.p50, rounded),
            ]}
          />
        </tr>
      ))}
    </Table>
  );
}

/** Errors of calls by code. */
function Errors({ metrics: { errors }, range }: { metrics: MetricsInfo; range: Range }) {
  const words = useWords();
  const texts = useMetricsWords();
  if (errors.length === 0) return null;
  const statuses: Readonly<Record<string, string>> = words.callStatus;
  return (
    <Table title={texts.byError} heads={[texts.error, texts.calls]}>
      {errors.map(({ name, count }) => (
        <tr key={name}>
          <th scope="row" title={name}>
            <Link href={statuses[name] ? callsOf(range, { status: name }) : callsOf(range, { q: name })}>
              {name}
            </Link>
          </th>
          <Figures values={[count]} />
        </tr>
      ))}
    </Table>
  );
}

/** Conversations with the highest token counts. */
function Conversations({ metrics: { conversations }, range }: { metrics: MetricsInfo; range: Range }) {
  const texts = useMetricsWords();
  if (conversations.length === 0) return null;
  const heads = [texts.conversation, texts.turns, texts.tokensIn, texts.tokensOut, texts.calls, texts.failed];
  return (
    <Table title={texts.byConversation} heads={heads}>
      {conversations.map((row) => (
        <tr key={row.conversation_id}>
          <th scope="row" title={row.title}>
            <Link
              className="title"
              href={turnsOf(range, { conversation_id: row.conversation_id })}
              dir="auto"
            >
              {row.title || texts.noTitle}
            </Link>
          </th>
          <Figures
            values={[
              row.turns,
              short(row.input_tokens),
              short(row.output_tokens),
              row.calls,
              row.failed_calls,
            ]}
          />
        </tr>
      ))}
    </Table>
  );
}

function Tools({ metrics: { tools, tools_left_out }, range }: { metrics: MetricsInfo; range: Range }) {
  const texts = useMetricsWords();
  if (tools.length === 0) return <p>{texts.noCalls}</p>;
  return (
    <Table title={texts.byTool} heads={[texts.tool, texts.calls, texts.errorRate, texts.p50, texts.p95]}>
      {tools.map((tool) => (
        <tr key={tool.tool_name}>
          <th scope="row" title={tool.tool_name}>
            <Link href={callsOf(range, { tool: tool.tool_name })}>{tool.tool_name}</Link>
          </th>
          <Figures values={[tool.total, percent(tool.error_rate), ...spread(tool)]} />
        </tr>
      ))}
      {tools_left_out > 0 && (
        <tr>
          <td colSpan={5}>{texts.moreTools(tools_left_out)}</td>
        </tr>
      )}
    </Table>
  );
}

/** Data of the charts as a table, without empty parts. */
function Parts({ metrics }: { metrics: MetricsInfo }) {
  const texts = useMetricsWords();
  const parts = metrics.buckets.filter(({ turns, calls }) => turns.total + calls.total > 0);
  if (parts.length === 0) return null;
  return (
    <details>
      <summary>{texts.asTable}</summary>
      <Table
        title={texts.asTable}
        heads={[
          texts.from,
          texts.turns,
          texts.firstToken,
          texts.p95,
          texts.speed,
          texts.calls,
          texts.errorRate,
          texts.took,
          texts.p95,
        ]}
      >
        {parts.map(({ from, turns, calls }) => (
          <tr key={from}>
            <th scope="row">{moment(from, metrics)}</th>
            <Figures
              values={[
                turns.total,
                format(turns.first_token_ms.p50),
                format(turns.first_token_ms.p95),
                format(turns.tokens_per_second.p50, rounded),
                calls.total,
                percent(calls.error_rate),
                ...spread(calls),
              ]}
            />
          </tr>
        ))}
      </Table>
    </details>
  );
}

function Table({ title, heads, children }: { title: string; heads: readonly string[]; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <section className="figures" tabIndex={0}>
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            {heads.map((head, at) => (
              <th key={at} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

function Figures({ values }: { values: readonly (string | number)[] }) {
  return values.map((value, at) => <td key={at}>{value}</td>);
}

function format(value: number | null | undefined, how = duration): string {
  return value == null ? "–" : how(value);
}

function spread({ duration_ms: { p50, p95 } }: Pick<ToolMetrics, "duration_ms">): string[] {
  return [format(p50), format(p95)];
}

/** Time of day; with the date for ranges longer than a day. */
function moment(at: number, { from, until }: MetricsInfo): string {
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const isLong = until - from > 86_400_000;
  const day = isLong ? ({ month: "short", day: "numeric" } as const) : {};
  return new Intl.DateTimeFormat(language.get(), { ...day, ...time }).format(at);
}
