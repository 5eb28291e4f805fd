import { useCallback } from "react";
import { useClient } from "../session/context.tsx";
import { useRows } from "../shared/paged-rows.tsx";
import { ShareLinks } from "../sharing/links.tsx";
import { useSharedWords } from "../sharing/words.ts";
import { Panel } from "../ui/panel.tsx";

/** Links to shared conversations. */
export default function Shares() {
  const texts = useSharedWords();
  const client = useClient();
  const page = useCallback(
    (cursor: string | undefined, signal: AbortSignal) =>
      client.call("GET /v1/shares", { query: cursor === undefined ? {} : { cursor }, signal }),
    [client],
  );
  return (
    <Panel title={texts.title}>
      <p className="px-3.5 pt-3 text-[13px] text-muted">{texts.titleHow}</p>
      <div className="py-1.5">
        <ShareLinks links={useRows(page)} none={texts.none} />
      </div>
    </Panel>
  );
}
