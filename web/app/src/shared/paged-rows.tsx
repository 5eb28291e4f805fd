import { type ReactNode, useCallback, useEffect, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";

interface Rows<T> {
  items: readonly T[];
  next: string | undefined;
}

type Page<T> = (
  cursor: string | undefined,
  signal: AbortSignal,
) => Promise<{ items: T[]; next?: string | null }>;

/** Loads a list page by page. `page` must be stable. */
export function useRows<T>(page: Page<T>) {
  const [rows, setRows] = useState<Rows<T>>();
  const [error, setError] = useState<unknown>();
  const load = useCallback(
    async (cursor: string | undefined, signal: AbortSignal): Promise<void> => {
      try {
        const { items, next } = await page(cursor, signal);
        if (signal.aborted) return;
        setError(undefined);
        setRows((before) => ({
          items: cursor === undefined ? items : [...(before?.items ?? []), ...items],
          next: next ?? undefined,
        }));
      } catch (error) {
        if (!signal.aborted) setError(error);
      }
    },
    [page],
  );
  const [asking, setAsking] = useState(() => new AbortController());
  useEffect(() => {
    void load(undefined, asking.signal);
    return () => asking.abort();
  }, [load, asking]);
  const again = useCallback(() => setAsking(new AbortController()), []);
  const without = (isRemoved: (row: T) => boolean): void =>
    setRows((before) => before && { ...before, items: before.items.filter((row) => !isRemoved(row)) });
  /** Replaces the matching row, or inserts the row at the top. */
  const put = (row: T, isSame: (row: T) => boolean): void =>
    setRows(
      (before) =>
        before && {
          ...before,
          items: before.items.some(isSame)
            ? before.items.map((one) => (isSame(one) ? row : one))
            : [row, ...before.items],
        },
    );
  return { rows, error, again, without, put, more: () => void load(rows?.next, asking.signal) };
}

/** A row with its actions; `below`: content that an action opens. */
export function Row({ children, side, below }: { children: ReactNode; side: ReactNode; below?: ReactNode }) {
  return (
    <li className="flex flex-wrap items-start gap-x-3 gap-y-2 border-t border-line px-3.5 py-2.5 first:border-t-0">
      <div className="min-w-0 flex-1 basis-60">{children}</div>
      {side}
      {below && <div className="w-full">{below}</div>}
    </li>
  );
}

/** A button that asks for confirmation first. */
export function Confirmed({
  label,
  name,
  sure,
  act,
}: {
  label: string;
  name: string;
  sure: string;
  act(): void;
}) {
  const [isSure, setSure] = useState(false);
  const words = useWords();
  if (!isSure) {
    return (
      <button type="button" className="button" aria-label={name} onClick={() => setSure(true)}>
        {label}
      </button>
    );
  }
  return (
    <span className="flex gap-1.5">
      {/* biome-ignore lint/a11y/noAutofocus: it replaces the pressed button */}
      <button type="button" className="button danger" autoFocus onClick={act}>
        {sure}
      </button>
      <button type="button" className="button" onClick={() => setSure(false)}>
        {words.cancel}
      </button>
    </span>
  );
}

/** Date and time, `24 Nov 2026, 03:12`. */
export function moment(at: number): string {
  return new Intl.DateTimeFormat(language.get(), { dateStyle: "medium", timeStyle: "short" }).format(at);
}
