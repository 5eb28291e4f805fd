import { useState, useSyncExternalStore } from "react";
import { askPermission, permission } from "../notices/show.ts";
import { noticesWanted } from "../preferences.ts";
import { Panel } from "../ui/panel.tsx";
import { useSettingsWords } from "./words.ts";

/** Setting for notifications in this browser. */
export function NoticesPanel() {
  const texts = useSettingsWords();
  const wanted = useSyncExternalStore(noticesWanted.subscribe, noticesWanted.get);
  const [allowed, setAllowed] = useState(permission);
  const isOn = wanted === "on" && allowed === "granted";
  const change = async (isWanted: boolean): Promise<void> => {
    const answer = isWanted ? await askPermission() : allowed;
    setAllowed(answer);
    noticesWanted.set(isWanted && answer === "granted" ? "on" : "off");
  };
  return (
    <Panel title={texts.notices}>
      <div className="panel-body">
        <p className="text-[13px] text-muted">{texts.noticesHow}</p>
        <label className="flex items-center gap-2 text-[13px]">
          <input
            type="checkbox"
            checked={isOn}
            disabled={allowed === "unsupported" || allowed === "denied"}
            onChange={(event) => void change(event.currentTarget.checked)}
          />
          {texts.noticesOn}
        </label>
        {(allowed === "denied" || allowed === "unsupported") && (
          <p role="status" className="text-[13px]">
            {allowed === "denied" ? texts.noticesBlocked : texts.noticesUnsupported}
          </p>
        )}
      </div>
    </Panel>
  );
}
