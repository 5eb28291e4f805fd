import type { MeInfo } from "@throughline/client";
import { useState } from "react";
import { grouped } from "../i18n/en.ts";
import { useWords } from "../i18n/use.ts";
import { useSession } from "../session/context.tsx";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import type { RequestState } from "../ui/use-request.ts";
import { useSettingsWords } from "./words.ts";

/** The signed-in user, and the button to sign out. */
export function Account({
  me: { value: me, error, again },
}: {
  me: RequestState<MeInfo> & { again(): void };
}) {
  const words = useWords();
  const texts = useSettingsWords();
  const session = useSession();
  const [failure, setFailure] = useState<unknown>();
  const leave = async (): Promise<void> => {
    try {
      const provider = await session?.signOut();
      if (provider !== undefined) location.assign(provider);
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <Panel title={texts.account}>
      {error !== undefined && <Failure error={error} again={again} />}
      {failure !== undefined && <Failure error={failure} />}
      {me === undefined ? (
        error === undefined && (
          <p role="status" className="p-3.5 text-[13px] text-muted">
            {words.loading}
          </p>
        )
      ) : (
        <>
          <dl className="settings-facts">
            <dt>{texts.signedInAs}</dt>
            <dd>
              <strong>{me.user}</strong>
            </dd>
            <dt>{texts.signedInBy}</dt>
            <dd>{texts.means[me.signed_in_by] ?? me.signed_in_by}</dd>
            <dt>{texts.scopes}</dt>
            <dd>{me.scopes.map((scope) => texts.scope[scope] ?? scope).join(" · ")}</dd>
            <dt>{texts.today}</dt>
            <dd>{texts.used(grouped(me.usage.turns_today), grouped(me.usage.tokens_today))}</dd>
            <dt>{texts.month}</dt>
            <dd>{texts.used(grouped(me.usage.turns_this_month), grouped(me.usage.tokens_this_month))}</dd>
          </dl>
          {me.signed_in_by !== "off" && me.signed_in_by !== "proxy" && (
            <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-t border-line p-3.5">
              <button type="button" className="button" onClick={() => void leave()}>
                {texts.signOut}
              </button>
              <p className="flex-1 basis-60 text-[12.5px] text-muted">{texts.signOutHint}</p>
            </div>
          )}
        </>
      )}
    </Panel>
  );
}
