import { useCallback } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Choices } from "../shell/settings.tsx";
import { later } from "../ui/later.tsx";
import { Panel } from "../ui/panel.tsx";
import { useRequest } from "../ui/use-request.ts";
import { Account } from "./account.tsx";
import { ExportAll } from "./export-all.tsx";
import { Keys } from "./keys.tsx";
import { NoticesPanel } from "./notices.tsx";
import { Remembered } from "./remembered.tsx";
import { useSettingsWords } from "./words.ts";

const People = later(() => import("./people.tsx"));
const Shares = later(() => import("./shares.tsx"));

/** Settings: account, remembered decisions, appearance. */
export default function SettingsView() {
  const words = useWords();
  const texts = useSettingsWords();
  const client = useClient();
  const me = useRequest(
    useCallback((signal: AbortSignal) => client.call("GET /v1/me", { signal }), [client]),
  );
  return (
    <>
      <header className="flex min-h-13 flex-none items-center border-b border-line px-4 min-[720px]:px-6">
        <h1 className="text-[15px] font-semibold">{words.settings}</h1>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="min-h-0 flex-1 overflow-auto" tabIndex={0} aria-label={texts.parts}>
        <div className="mx-auto grid max-w-180 grid-cols-[minmax(0,1fr)] gap-4 p-3 pb-8 min-[720px]:p-6">
          <Account me={me} />
          <Keys me={me.value} />
          {me.value?.scopes.includes("admin") && <People me={me.value} />}
          <Remembered />
          <Shares />
          <Panel title={texts.appearance}>
            <div className="panel-body !gap-1">
              <Choices />
            </div>
          </Panel>
          <NoticesPanel />
          <ExportAll />
          <About />
        </div>
      </section>
    </>
  );
}

function About() {
  const words = useWords();
  const texts = useSettingsWords();
  const ask = useCallback(async (signal: AbortSignal) => {
    // The release is part of the API description.
    const response = await fetch("/v1/openapi.json", { signal });
    const { info }: { info?: { version?: string; license?: { name?: string } } } = await response.json();
    return info;
  }, []);
  const { value } = useRequest(ask);
  return (
    <Panel title={texts.about}>
      <dl className="settings-facts">
        <dt>{words.appName}</dt>
        <dd>{value?.version === undefined ? "…" : `${texts.version} ${value.version}`}</dd>
        <dt>{texts.license}</dt>
        <dd>{value?.license?.name ?? "MIT OR Apache-2.0"}</dd>
        <dt>API</dt>
        <dd>
          <a href="/docs" className="text-accent underline">
            {texts.documentation}
          </a>
        </dd>
      </dl>
    </Panel>
  );
}
