import { useVirtualizer } from "@tanstack/react-virtual";
import type { CallInfo } from "@throughline/client";
import { type KeyboardEvent, useEffect, useRef } from "react";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";
import { callTone } from "../shared/call-card/tone.ts";
import { duration } from "../shared/format.ts";
import { Link } from "../shared/link.tsx";
import { go } from "../shared/router.ts";
import type { CallsState } from "./model/calls.ts";
import { isEverything } from "./model/filter.ts";
import { argumentsLine, moment, stateOf, stateWord } from "./model/row.ts";
import { useHistoryWords } from "./words.ts";

interface TableProps {
  state: CallsState;
  open: string | undefined;
  addressOf(call: string): string;
  more(): void;
  clear(): void;
}

const ROW_PX = 40;
/** The next page is loaded when this many rows are left below. */
const AHEAD = 20;

/** The calls, newest first: virtualized, and loaded page by page while scrolling. */
export function CallsTable({ state, open, addressOf, more, clear }: TableProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const scroller = useRef<HTMLDivElement>(null);
  const { rows } = state;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (at) => rows[at]?.tool_id ?? at,
    overscan: 8,
    useFlushSync: false,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const isNearEnd = state.next !== undefined && last >= rows.length - AHEAD;
  // The row count is a dependency because each page may end the same distance from the end.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => {
    if (isNearEnd) more();
  }, [isNearEnd, rows.length]);

  if (rows.length === 0) return state.isLoading ? null : <Nothing state={state} clear={clear} />;
  const above = shown[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    <div
      ref={scroller}
      className="mx-4 mb-4 min-h-0 overflow-auto overscroll-contain rounded-card border border-line bg-surface shadow-card min-[720px]:mx-6"
      aria-busy={state.isLoading}
    >
      <table className="history" aria-rowcount={(state.total ?? rows.length) + 1} onKeyDown={moveFocus}>
        <caption className="sr-only">{texts.calls}</caption>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" className="w-30 max-[519px]:w-24">
              {texts.when}
            </th>
            <th scope="col" className="min-[720px]:w-[26%]">
              {texts.tool}
            </th>
            <th scope="col" className="max-[719px]:hidden">
              {words.arguments}
            </th>
            <th scope="col" className="w-36 max-[519px]:w-30">
              {texts.status}
            </th>
            <th scope="col" className="figure w-22 max-[519px]:hidden">
              {texts.time}
            </th>
          </tr>
        </thead>
        <tbody>
          <Spacer px={above} />
          {shown.map(({ index, key }) => {
            const row = rows[index];
            return (
              row && (
                <Row
                  key={String(key)}
                  row={row}
                  at={index}
                  isOpen={row.tool_id === open}
                  href={addressOf(row.tool_id)}
                />
              )
            );
          })}
          <Spacer px={below} />
        </tbody>
      </table>
      {state.next !== undefined && (
        <p className="p-2 text-center text-[12.5px] text-muted">{texts.loadingMore}</p>
      )}
    </div>
  );
}

/** Space of the rows that are not in the DOM. */
function Spacer({ px }: { px: number }) {
  if (px <= 0) return null;
  return (
    <tr aria-hidden className="spacer" style={{ height: px }}>
      {/* One cell: a larger colspan would add columns, and on a phone there are fewer. */}
      <td />
    </tr>
  );
}

interface RowProps {
  row: CallInfo;
  at: number;
  isOpen: boolean;
  href: string;
}

function Row({ row, at, isOpen, href }: RowProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const state = stateOf(row.status, words, row.error);
  return (
    <tr data-row={row.tool_id} aria-rowindex={at + 2} onClick={() => go(href)}>
      <td className="when" title={new Date(row.started_at).toLocaleString(language.get())}>
        {moment(row.started_at, Date.now(), document.documentElement.lang)}
      </td>
      <td>
        <Link
          href={href}
          aria-current={isOpen ? "true" : undefined}
          className="font-mono text-[12.5px] font-semibold"
          title={row.tool_name}
          onClick={(event) => event.stopPropagation()}
        >
          {row.tool_name}
        </Link>
      </td>
      <td className="font-mono text-[12px] text-muted max-[719px]:hidden">
        {state.status === "preparing" ? "…" : argumentsLine(row.arguments) || words.noArguments}
      </td>
      <td>
        <span className="pill" data-look={callTone(state)}>
          {stateWord(state, words, texts)}
        </span>
      </td>
      <td className="figure max-[519px]:hidden">
        {row.duration_ms == null ? "–" : duration(row.duration_ms)}
      </td>
    </tr>
  );
}

/** Arrow keys move between rows. */
function moveFocus(event: KeyboardEvent<HTMLTableElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const links = [...event.currentTarget.querySelectorAll<HTMLAnchorElement>("[data-row] a")];
  const at = links.findIndex((link) => link.matches(":focus"));
  const next = at === -1 ? undefined : links[at + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

function Nothing({ state, clear }: { state: CallsState; clear(): void }) {
  const words = useWords();
  const texts = useHistoryWords();
  if (state.failure !== undefined) return null;
  if (isEverything(state.filter)) {
    return (
      <div className="m-auto max-w-90 p-6 text-center text-muted">
        <p>{texts.nothing}</p>
        <Link href="/" className="text-accent underline">
          {words.toChat}
        </Link>
      </div>
    );
  }
  return (
    <div className="m-auto p-6 text-center text-muted">
      <p>{texts.noMatch}</p>
      <button type="button" className="text-accent underline" onClick={clear}>
        {texts.clear}
      </button>
    </div>
  );
}
