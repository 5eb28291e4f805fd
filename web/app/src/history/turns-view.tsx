import { GitCompareArrows, RefreshCw } from "lucide-react";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Link } from "../shared/link.tsx";
import { go, onPath, search } from "../shared/router.ts";
import { failed } from "../ui/failed.ts";
import { IconButton } from "../ui/icon-button.tsx";
import { later } from "../ui/later.tsx";
import { useFocusAfter } from "./focus.ts";
import { ROWS } from "./model/rows.ts";
import { type TurnFilter, turnAddressOf, turnsLocationOf } from "./model/turn-filter.ts";
import { Turns, type TurnsState } from "./model/turns.ts";
import { Tabs } from "./tabs.tsx";
import { TurnFilters } from "./turn-filters.tsx";
import { TurnsTable } from "./turns-table.tsx";
import { useHistoryWords } from "./words.ts";

const TurnDetail = later(async () => ({ default: (await import("./turn-detail.tsx")).TurnDetail }));
const Compare = later(async () => ({ default: (await import("./compare.tsx")).Compare }), "view");

/** All turns. The address has the filter, the open turn and the compared turns. */
export function TurnsView() {
  const words = useWords();
  const texts = useHistoryWords();
  const client = useClient();
  const query = useSyncExternalStore(onPath, search);
  const current = useMemo(() => turnsLocationOf(query), [query]);
  const turns = useMemo(() => new Turns(client), [client]);
  const state = useSyncExternalStore(turns.subscribe, turns.get);
  const listAddress = turnAddressOf({ filter: current.filter });
  useEffect(
    () => void turns.show(turnsLocationOf(new URL(listAddress, location.href).search).filter),
    [turns, listAddress],
  );
  useEffect(() => {
    const seen = (): void => {
      if (document.visibilityState === "visible") void turns.refresh();
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, [turns]);
  useWhileRunning(turns, state);
  const [picked, setPicked] = useState<readonly string[]>([]);
  const pick = (turn: string): void =>
    // A third choice replaces the oldest one.
    setPicked(picked.includes(turn) ? picked.filter((one) => one !== turn) : [...picked, turn].slice(-2));
  const filterBy = (filter: TurnFilter, how: "push" | "replace" = "push"): void =>
    go(turnAddressOf({ ...current, filter }), how);
  const open = current.turn;
  const close = listAddress;
  const view = useRef<HTMLDivElement>(null);
  useFocusAfter(open, view);
  const onKeyDown = (event: KeyboardEvent): void => {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "Escape" && open !== undefined && !isTyping && !event.defaultPrevented) go(close);
  };
  if (current.compare !== undefined) {
    return <Compare turns={current.compare} close={close} />;
  }
  const [first, second] = picked;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a key for what the link that closes does as well
    <div ref={view} className="relative flex min-h-0 flex-1" onKeyDown={onKeyDown}>
      <section
        data-list
        aria-label={texts.turns}
        className={`turns-list flex min-h-0 min-w-0 flex-1 flex-col ${open === undefined ? "" : "max-[999px]:invisible"}`}
      >
        <header className="flex min-h-13 flex-none flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1.5 min-[720px]:px-6">
          <Tabs here="turns" />
          <p role="status" className="flex-1 text-[12.5px] text-muted tabular-nums">
            {state.total !== undefined && texts.shownTurns(state.total)}
          </p>
          <IconButton label={texts.refresh} onClick={() => void turns.refresh()}>
            <RefreshCw aria-hidden size={16} />
          </IconButton>
        </header>
        {state.failure !== undefined && (
          <p
            role="alert"
            className="bg-error-soft px-4 py-2 text-[13px] whitespace-pre-wrap text-error min-[720px]:px-6"
          >
            {failed(state.failure, words)}
          </p>
        )}
        <TurnFilters state={state} filter={current.filter} filterBy={filterBy} />
        {first !== undefined && (
          <p className="picked-bar" role="status">
            <GitCompareArrows aria-hidden size={15} />
            {second === undefined ? (
              texts.pickAnother
            ) : (
              <Link
                href={turnAddressOf({ filter: current.filter, compare: [first, second] })}
                className="button primary"
              >
                {texts.compareTwo}
              </Link>
            )}
            <button type="button" className="button quiet" onClick={() => setPicked([])}>
              {words.cancel}
            </button>
          </p>
        )}
        <TurnsTable
          state={state}
          open={open}
          picked={picked}
          pick={pick}
          addressOf={(turn) => turnAddressOf({ ...current, turn })}
          more={() => void turns.more()}
          clear={() => filterBy({})}
        />
      </section>
      {open !== undefined && (
        <TurnDetail key={open} turnId={open} filter={current.filter} filterBy={filterBy} close={close} />
      )}
    </div>
  );
}

/** Interval of refreshes while turns are running. */
const AGAIN_MS = 3_000;

/** Refreshes running turns, unless the user has scrolled down. */
function useWhileRunning(turns: Turns, { rows, isLoading }: TurnsState): void {
  const goesOn = rows.length <= ROWS && rows.some((row) => row.status === "running");
  useEffect(() => {
    if (!goesOn || isLoading) return undefined;
    const timer = setTimeout(() => {
      if (document.visibilityState === "visible") void turns.refresh();
    }, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [turns, goesOn, isLoading]);
}
