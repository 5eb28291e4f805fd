import { type KeyboardEvent, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { useClient } from "../session/context.tsx";
import { go, onPath, search } from "../shared/router.ts";
import { CallsTable } from "./calls-table.tsx";
import { Detail } from "./detail.tsx";
import { Filters } from "./filters.tsx";
import { useFocusAfter } from "./focus.ts";
import { Header } from "./header.tsx";
import { Calls, type CallsState } from "./model/calls.ts";
import { addressOf, callsLocationOf, type Filter } from "./model/filter.ts";
import { UNFINISHED } from "./model/row.ts";
import { ROWS } from "./model/rows.ts";
import { useHistoryWords } from "./words.ts";

/** All calls. The address has the filter and the open call. */
export function CallsView() {
  const texts = useHistoryWords();
  const client = useClient();
  const query = useSyncExternalStore(onPath, search);
  const current = useMemo(() => callsLocationOf(query), [query]);
  const calls = useMemo(() => new Calls(client), [client]);
  const state = useSyncExternalStore(calls.subscribe, calls.get);
  const listAddress = addressOf({ filter: current.filter });
  useEffect(
    () => void calls.show(callsLocationOf(new URL(listAddress, location.href).search).filter),
    [calls, listAddress],
  );
  useEffect(() => {
    const seen = (): void => {
      if (document.visibilityState === "visible") void calls.refresh();
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, [calls]);

  useWhileRunning(calls, state);

  const filterBy = (filter: Filter, how: "push" | "replace" = "push"): void =>
    go(addressOf({ ...current, filter }), how);
  const open = current.call;
  const close = addressOf({ filter: current.filter });
  const view = useRef<HTMLDivElement>(null);
  useFocusAfter(open, view);
  const onKeyDown = (event: KeyboardEvent): void => {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === "Escape" && open !== undefined && !isTyping) go(close);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a key for what the link that closes does as well
    <div ref={view} className="relative flex min-h-0 flex-1" onKeyDown={onKeyDown}>
      <section
        data-list
        aria-label={texts.calls}
        // The list stays laid out beneath the details, so that its rows are there when they close.
        className={`flex min-h-0 min-w-0 flex-1 flex-col ${open === undefined ? "" : "max-[999px]:invisible"}`}
      >
        <Header state={state} filter={current.filter} refresh={() => void calls.refresh()} />
        <Filters state={state} filter={current.filter} filterBy={filterBy} />
        <CallsTable
          state={state}
          open={open}
          addressOf={(call) => addressOf({ ...current, call })}
          more={() => void calls.more()}
          clear={() => filterBy({})}
        />
      </section>
      {open !== undefined && (
        <Detail
          key={open}
          toolId={open}
          // A running call is reloaded when the list changes.
          status={state.rows.find((row) => row.tool_id === open)?.status}
          filter={current.filter}
          filterBy={filterBy}
          close={close}
        />
      )}
    </div>
  );
}

/** Interval of refreshes while calls are running. */
const AGAIN_MS = 3_000;

/** Refreshes running calls, unless the user has scrolled down. */
function useWhileRunning(calls: Calls, { rows, isLoading }: CallsState): void {
  const goesOn = rows.length <= ROWS && rows.some((row) => UNFINISHED.has(row.status));
  useEffect(() => {
    if (!goesOn || isLoading) return undefined;
    const timer = setTimeout(() => {
      if (document.visibilityState === "visible") void calls.refresh();
    }, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [calls, goesOn, isLoading]);
}
