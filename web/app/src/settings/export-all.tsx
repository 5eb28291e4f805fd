import { Download } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useClient } from "../session/context.tsx";
import { download } from "../ui/download.ts";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import { EXPORTED_CONVERSATIONS_MAX, exportAll } from "./model/export-all.ts";
import { useSettingsWords } from "./words.ts";

/** Export of all conversations. */
export function ExportAll() {
  const texts = useSettingsWords();
  const client = useClient();
  const [done, setDone] = useState<number>();
  const [status, setStatus] = useState("");
  const [failure, setFailure] = useState<unknown>();
  const asking = useRef<AbortController>(undefined);
  useEffect(() => () => asking.current?.abort(), []);
  const take = async (): Promise<void> => {
    const leave = new AbortController();
    asking.current = leave;
    const { signal } = leave;
    setFailure(undefined);
    setStatus("");
    setDone(0);
    try {
      const { file, count, isCut } = await exportAll(client, setDone, signal);
      download(file, `throughline-${new Date().toISOString().slice(0, 10)}.zip`);
      setStatus(
        [texts.exported(count), isCut && texts.exportCut(EXPORTED_CONVERSATIONS_MAX)]
          .filter(Boolean)
          .join(" "),
      );
    } catch (error) {
      if (!signal.aborted) setFailure(error);
    } finally {
      setDone(undefined);
    }
  };
  return (
    <Panel title={texts.data}>
      <div className="panel-body">
        <p className="text-[13px] text-muted">{texts.exportHow}</p>
        {failure !== undefined && <Failure error={failure} />}
        <div className="flex flex-wrap items-center gap-3">
          {done === undefined ? (
            <button type="button" className="button" onClick={() => void take()}>
              <Download aria-hidden size={14} />
              {texts.exportAll}
            </button>
          ) : (
            <button type="button" className="button" onClick={() => asking.current?.abort()}>
              {texts.stop}
            </button>
          )}
          <p role="status" className="text-[13px] text-muted tabular-nums">
            {done === undefined ? status : texts.exporting(done)}
          </p>
        </div>
      </div>
    </Panel>
  );
}
