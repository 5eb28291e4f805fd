import type { MetricsInfo, ToolMetrics } from "@throughline/client";
import { type ReactNode, useCallback, useEffect, useId, useSyncExternalStore } from "react";
import { Lines, type Series } from "../charts/lines.tsx";
import { duration } from "../chat/clock.ts";
import { useWords } from "../i18n/use.ts";
import { frames, language } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { Link } from "../shell/link.tsx";
import { onPath, search } from "../shell/router.ts";
import { useAsked } from "../ui/asked.ts";
import { Failure } from "../ui/failure.tsx";
import {
  addressOfRange,
  ask,
  callsOf,
  failedOf,
  percent,
  RANGES,
  type Range,
  rangeOf,
  rounded,
} from "./model.ts";
import { useMetricsWords } from "./words.ts";

/** How fast and how well it goes. Each figure leads to the calls that it is of. R: U5 */
export default function MetricsView() {
  const words = useWords();
  const own = useMetricsWords();
  const range = rangeOf(useSyncExternalStore(onPath, search));
  const { value, error, again } = useMetrics(range);
  return (
    <>
      <header className="flex min-h-13 flex-none flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1.5 min-[720px]:px-6">
        <h1 className="text-[15px] font-semibold">{words.metrics}</h1>
        <nav aria-label={own.range} className="segments ml-auto">
          {RANGES.map((one) => (
            <Link
              key={one.span}
              href={addressOfRange(one)}
              aria-current={one === range ? "true" : undefined}
              aria-label={own.spans[one.span][1]}
            >
              {own.spans[one.span][0]}
            </Link>
          ))}
        </nav>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="metrics" tabIndex={0} aria-label={words.metrics}>
        {error !== undefined && <Failure error={error} again={again} />}
        {value ? (
          <Known metrics={value} range={range} />
        ) : (
          error === undefined && <p role="status">{words.loading}</p>
        )}
      </section>
    </>
  );
}

/** So often it is looked again, while somebody looks. */
const AGAIN_MS = 15_000;

/** The metrics of a time, renewed quietly. What was there stays until there is something newer of the same time. */
function useMetrics(range: Range) {
  const client = useClient();
  const asked = useAsked(useCallback((signal) => ask(client, range, Date.now(), signal), [client, range]));
  const { value, again } = asked;
  useEffect(() => {
    const look = (): void => {
      if (document.visibilityState === "visible") again();
    };
    const timer = setInterval(look, AGAIN_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [again]);
  return { ...asked, value: value?.bucket_ms === range.partMs ? value : undefined };
}

function Known({ metrics, range }: { metrics: MetricsInfo; range: Range }) {
  const own = useMetricsWords();
  const { turns, calls, buckets } = metrics;
  const first = turns.first_token_ms;
  const took = calls.duration_ms;
  const all = callsOf(range);
  const [late = 0, watchedMs = 0] = useSyncExternalStore(frames.subscribe, frames.get).split("/").map(Number);
  const series = (of: (part: MetricsInfo["buckets"][number]) => number | null | undefined): Series =>
    buckets.map(of);
  return (
    <>
      {(metrics.turns_cut || metrics.calls_cut) && <p role="note">{own.cut(metrics.samples_max)}</p>}
      <ul className="tiles">
        <Tile
          name={own.firstToken}
          href={all}
          metrics={metrics}
          said={duration}
          figures={[
            [own.p50, first.p50],
            [own.p95, first.p95],
          ]}
          series={[
            series(({ turns }) => turns.first_token_ms.p50),
            series(({ turns }) => turns.first_token_ms.p95),
          ]}
        />
        <Tile
          name={own.speed}
          href={all}
          metrics={metrics}
          said={rounded}
          figures={[[own.p50, turns.tokens_per_second.p50]]}
          series={[series(({ turns }) => turns.tokens_per_second.p50)]}
        />
        <Tile
          name={own.took}
          href={callsOf(range, { slow: "1" })}
          metrics={metrics}
          said={duration}
          figures={[
            [own.p50, took.p50],
            [own.p95, took.p95],
          ]}
          series={[
            series(({ calls }) => calls.duration_ms.p50),
            series(({ calls }) => calls.duration_ms.p95),
          ]}
        />
        <Tile
          name={own.errorRate}
          href={failedOf(range)}
          metrics={metrics}
          said={percent}
          figures={[[own.failedOf(calls.failed, calls.finished), calls.error_rate]]}
          series={[series(({ calls }) => calls.error_rate)]}
        />
        <Tile
          name={own.calls}
          href={all}
          metrics={metrics}
          said={String}
          figures={[
            [own.calls, calls.total],
            [own.turns, turns.total],
          ]}
          series={[series(({ calls }) => calls.total), series(({ turns }) => turns.total)]}
        />
        <Tile
          name={own.waiting}
          href="/history?status=awaiting_approval"
          said={String}
          figures={[[own.now, metrics.approvals_waiting]]}
        />
        <Tile name={own.lateFrames} said={String} figures={[[own.framesIn(duration(watchedMs)), late]]} />
      </ul>
      <Tools metrics={metrics} range={range} />
      <Parts metrics={metrics} />
    </>
  );
}

interface TileProps {
  name: string;
  /** The calls that it is of. */
  href?: string;
  said(value: number): string;
  /** Each with what it means. */
  figures: readonly (readonly [string, number | null | undefined])[];
  metrics?: MetricsInfo;
  series?: readonly Series[];
}

function Tile({ name, href, said, figures, metrics, series }: TileProps) {
  const own = useMetricsWords();
  const id = useId();
  return (
    <li className="tile" aria-labelledby={id}>
      <h2 id={id}>{href === undefined ? name : <Link href={href}>{name}</Link>}</h2>
      <dl>
        {figures.map(([what, value], number) => (
          <div key={what} data-line={series && figures.length > 1 ? number : undefined}>
            <dt>{what}</dt>
            <dd>{value == null ? "–" : said(value)}</dd>
          </div>
        ))}
      </dl>
      {metrics && series && (
        <Lines
          label={own.chartOf(name)}
          series={series}
          said={said}
          from={moment(metrics.from, metrics)}
          until={own.now}
        />
      )}
    </li>
  );
}

function Tools({ metrics: { tools, tools_left_out }, range }: { metrics: MetricsInfo; range: Range }) {
  const own = useMetricsWords();
  if (tools.length === 0) return <p>{own.noCalls}</p>;
  return (
    <Table title={own.byTool} heads={[own.tool, own.calls, own.errorRate, own.p50, own.p95]}>
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
          <td colSpan={5}>{own.moreTools(tools_left_out)}</td>
        </tr>
      )}
    </Table>
  );
}

/** What the charts show, in words and figures: parts in which nothing was done are left out. */
function Parts({ metrics }: { metrics: MetricsInfo }) {
  const own = useMetricsWords();
  const parts = metrics.buckets.filter(({ turns, calls }) => turns.total + calls.total > 0);
  if (parts.length === 0) return null;
  return (
    <details>
      <summary>{own.asTable}</summary>
      <Table
        title={own.asTable}
        heads={[
          own.from,
          own.turns,
          own.firstToken,
          own.p95,
          own.speed,
          own.calls,
          own.errorRate,
          own.took,
          own.p95,
        ]}
      >
        {parts.map(({ from, turns, calls }) => (
          <tr key={from}>
            <th scope="row">{moment(from, metrics)}</th>
            <Figures
              values={[
                turns.total,
                said(turns.first_token_ms.p50),
                said(turns.first_token_ms.p95),
                said(turns.tokens_per_second.p50, rounded),
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
    <div className="figures" tabIndex={0}>
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
    </div>
  );
}

function Figures({ values }: { values: readonly (string | number)[] }) {
  return values.map((value, at) => <td key={at}>{value}</td>);
}

function said(value: number | null | undefined, how = duration): string {
  return value == null ? "–" : how(value);
}

function spread({ duration_ms: { p50, p95 } }: Pick<ToolMetrics, "duration_ms">): string[] {
  return [said(p50), said(p95)];
}

/** The time of day; of what is longer than a day, the day as well. */
function moment(at: number, { from, until }: MetricsInfo): string {
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  const isLong = until - from > 86_400_000;
  const day = isLong ? ({ month: "short", day: "numeric" } as const) : {};
  return new Intl.DateTimeFormat(language.get(), { ...day, ...time }).format(at);
}
