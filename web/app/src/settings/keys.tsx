import type { MeInfo } from "@throughline/client";
import { later } from "../ui/later.tsx";
import { Panel } from "../ui/panel.tsx";
import { useSettingsWords } from "./words.ts";

const KeyList = later(() => import("./key-list.tsx"));

/** The user's own keys, for browsers and programs. */
export function Keys({ me }: { me: MeInfo | undefined }) {
  const texts = useSettingsWords();
  if (me === undefined) return null;
  const isAdmin = me.scopes.includes("admin");
  return (
    <Panel title={texts.keys}>
      <p className={`px-3.5 pt-3 text-[13px] text-muted ${isAdmin ? "" : "pb-3"}`}>
        {isAdmin ? texts.keysHow : texts.keysOfAdmins}
      </p>
      {isAdmin && <KeyList user={me.user} isAdmin />}
    </Panel>
  );
}
