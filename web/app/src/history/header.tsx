import { Download, RefreshCw } from "lucide-react";
import { useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { failed } from "../ui/failed.ts";
import { IconButton } from "../ui/icon-button.tsx";
import type { CallsState } from "./model/calls.ts";
import { exportCalls, type Format } from "./model/export.ts";
import type { Filter } from "./model/filter.ts";
import { Tabs } from "./tabs.tsx";
import { useHistoryWords } from "./words.ts";

const FORMATS: readonly Format[] = ["jsonl", "csv"];

/** Number of calls, with export and refresh. */
export function Header({ state, filter, refresh }: { state: CallsState; filter: Filter; refresh(): void }) {
  const words = useWords();
  const texts = useHistoryWords();
  const client = useClient();
  const [isExporting, setExporting] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const take = async (format: Format): Promise<void> => {
    setExporting(true);
    setFailure(undefined);
    try {
      await exportCalls(client, filter, format, Date.now());
    } catch (error) {
      setFailure(error);
    } finally {
      setExporting(false);
    }
  };
  return (
    <>
      <header className="flex min-h-13 flex-none flex-wrap items-center gap-x-2 gap-y-1 min-[720px]:gap-x-3 border-b border-line px-4 py-1.5 min-[720px]:px-6">
        <Tabs here="calls" />
        <p role="status" className="flex-1 text-[12.5px] text-muted tabular-nums">
          {isExporting ? texts.exporting : state.total !== undefined && texts.shown(state.total)}
        </p>
        <IconButton label={texts.refresh} onClick={refresh}>
          <RefreshCw aria-hidden size={16} />
        </IconButton>
        {FORMATS.map((format) => (
          <button
            key={format}
            type="button"
            className="button"
            aria-label={texts.exportAs(format.toUpperCase())}
            disabled={isExporting || state.rows.length === 0}
            onClick={() => void take(format)}
          >
            <Download aria-hidden size={14} className="max-[519px]:hidden" />
            {format.toUpperCase()}
          </button>
        ))}
      </header>
      {(failure ?? state.failure) !== undefined && (
        <p
          role="alert"
          className="bg-error-soft px-4 py-2 text-[13px] whitespace-pre-wrap text-error min-[720px]:px-6"
        >
          {failed(failure ?? state.failure, words)}
        </p>
      )}
    </>
  );
}
