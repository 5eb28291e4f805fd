import { useVirtualizer } from "@tanstack/react-virtual";
import type { TurnInfo } from "@throughline/client";
import { type KeyboardEvent, useEffect, useMemo, useRef } from "react";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";
import { duration } from "../shared/format.ts";
import { Link } from "../shared/link.tsx";
import { go } from "../shared/router.ts";
import { isEverything } from "./model/filter.ts";
import { itemsOf, type TurnsState, turnTone } from "./model/turns.ts";
import { FULL, tokensText } from "./texts.ts";
import { turnStatusWord, useHistoryWords } from "./words.ts";

interface TurnsTableProps {
  state: TurnsState;
  open: string | undefined;
  /** Selected turns: at most two can be compared. */
  picked: readonly string[];
  pick(turn: string): void;
  addressOf(turn: string): string;
  more(): void;
  clear(): void;
}

const ROW_PX = 56;
const DAY_PX = 36;
/** The next page is loaded when this many rows are left below. */
const AHEAD = 20;

/** The turns by day, newest first: virtualized, and loaded page by page while scrolling. */
export function TurnsTable({ state, open, picked, pick, addressOf, more, clear }: TurnsTableProps) {
  const texts = useHistoryWords();
  const scroller = useRef<HTMLDivElement>(null);
  const items = useMemo(() => itemsOf(state.rows), [state.rows]);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (items[at] && "day" in items[at] ? DAY_PX : ROW_PX),
    getItemKey: (at) => {
      const item = items[at];
      return item === undefined ? at : "day" in item ? item.day : item.turn.turn_id;
    },
    overscan: 8,
    useFlushSync: false,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  const isNearEnd = state.next !== undefined && last >= items.length - AHEAD;
  // The row count is a dependency because each page may end the same distance from the end.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => {
    if (isNearEnd) more();
  }, [isNearEnd, items.length]);

  if (items.length === 0) return state.isLoading ? null : <Nothing state={state} clear={clear} />;
  const above = shown[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    <div
      ref={scroller}
      className="mx-4 mb-4 min-h-0 overflow-auto overscroll-contain rounded-card border border-line bg-surface shadow-card min-[720px]:mx-6"
      aria-busy={state.isLoading}
    >
      <table className="history turns" onKeyDown={moveFocus}>
        <caption className="sr-only">{texts.turns}</caption>
        <thead>
          <tr>
            <th scope="col" className="pick">
              <span className="sr-only">{texts.compare}</span>
            </th>
            <th scope="col">{texts.turn}</th>
            <th scope="col" className="w-34 max-[519px]:w-28">
              {texts.status}
            </th>
            <th scope="col" className="figure roomy w-20">
              {texts.time}
            </th>
            <th scope="col" className="figure roomy w-34">
              {texts.tokens}
            </th>
            <th scope="col" className="figure roomy w-24">
              {texts.calls}
            </th>
          </tr>
        </thead>
        <tbody>
          <Spacer px={above} />
          {shown.map(({ index, key }) => {
            const item = items[index];
            if (item === undefined) return null;
            if ("day" in item) return <Day key={String(key)} day={item.day} />;
            const { turn } = item;
            return (
              <Row
                key={String(key)}
                turn={turn}
                isAsking={state.asking.has(turn.turn_id)}
                isOpen={turn.turn_id === open}
                isPicked={picked.includes(turn.turn_id)}
                pick={() => pick(turn.turn_id)}
                href={addressOf(turn.turn_id)}
              />
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
      <td />
    </tr>
  );
}

function Day({ day }: { day: number }) {
  const texts = useHistoryWords();
  const today = new Date().setHours(0, 0, 0, 0);
  const yesterday = new Date(today).setDate(new Date(today).getDate() - 1);
  const name = day === today ? texts.today : day === yesterday ? texts.yesterday : undefined;
  const date = new Date(day).toLocaleDateString(language.get(), { dateStyle: "full" });
  return (
    <tr className="day">
      <th scope="rowgroup" colSpan={3}>
        {name === undefined ? date : `${name} · ${date}`}
      </th>
      {/* A separate cell: hidden columns must not be counted. */}
      <td className="roomy" colSpan={3} />
    </tr>
  );
}

interface RowProps {
  turn: TurnInfo;
  /** The turn has an open approval. */
  isAsking: boolean;
  isOpen: boolean;
  isPicked: boolean;
  pick(): void;
  href: string;
}

function Row({ turn, isAsking, isOpen, isPicked, pick, href }: RowProps) {
  const texts = useHistoryWords();
  const at = new Date(turn.started_at);
  const clock = at.toLocaleTimeString(language.get(), {
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const input = turn.input || texts.noText;
  const status = isAsking && turn.status === "running" ? "asks" : turn.status;
  return (
    <tr
      data-row={turn.turn_id}
      onClick={({ target }) => {
        // A click next to the box is meant for it.
        if (!(target instanceof Element && target.closest(".pick"))) go(href);
      }}
    >
      <td className="pick">
        <input
          type="checkbox"
          checked={isPicked}
          aria-label={texts.compareThis(input, clock)}
          onChange={pick}
        />
      </td>
      <td className="asked">
        <Link
          href={href}
          dir="auto"
          aria-current={isOpen ? "true" : undefined}
          onClick={(event) => event.stopPropagation()}
        >
          {input}
        </Link>
        <small>
          <time dateTime={at.toISOString()} title={at.toLocaleString(language.get(), FULL)}>
            {clock}
          </time>
          {[turn.agent, turn.model].filter(Boolean).map((name) => (
            <bdi key={name}>{name}</bdi>
          ))}
          {turn.duration_ms != null && <span className="compact">{duration(turn.duration_ms)}</span>}
        </small>
      </td>
      <td>
        <span className="pill" data-look={turnTone(status)}>
          {turnStatusWord(status, texts)}
        </span>
      </td>
      <td className="figure roomy">{turn.duration_ms == null ? "–" : duration(turn.duration_ms)}</td>
      <td className="figure roomy">{tokensText(turn.input_tokens, turn.output_tokens) || "–"}</td>
      <td
        className="figure roomy"
        data-failed={turn.failed_calls > 0}
        title={texts.failedCalls(turn.failed_calls)}
      >
        {turn.calls}
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

function Nothing({ state, clear }: { state: TurnsState; clear(): void }) {
  const words = useWords();
  const texts = useHistoryWords();
  if (state.failure !== undefined) return null;
  if (isEverything(state.filter)) {
    return (
      <div className="m-auto max-w-90 p-6 text-center text-muted">
        <p>{texts.noTurns}</p>
        <Link href="/" className="text-accent underline">
          {words.toChat}
        </Link>
      </div>
    );
  }
  return (
    <div className="m-auto p-6 text-center text-muted">
      <p>{texts.noMatchingTurns}</p>
      <button type="button" className="text-accent underline" onClick={clear}>
        {texts.clear}
      </button>
    </div>
  );
}
