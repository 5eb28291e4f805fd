import { useCallback, useState } from "react";
import { ExampleTextBox, NO_TEXT } from "../agents/example-text.tsx";
import { useTextRuleWords } from "../agents/text-words.ts";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { agentAddress } from "../shared/agents-address.ts";
import { Link } from "../shared/link.tsx";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import { useRequest } from "../ui/use-request.ts";

/** Pause after the last keystroke. */
const WAIT_MS = 150;

/** Result of an agent's text rules for a text. */
export default function TextRulesPanel({ agent }: { agent: string }) {
  const words = useTextRuleWords();
  const { loading } = useWords();
  const client = useClient();
  const detail = useRequest(
    useCallback(
      (signal: AbortSignal) => client.call("GET /v1/agents/{agent}", { path: { agent }, signal }),
      [client, agent],
    ),
  );
  const settings = detail.value?.settings;
  const rules = settings?.text_rules ?? [];
  const [example, setExample] = useState(NO_TEXT);
  const ask = useCallback(
    async (signal: AbortSignal) =>
      settings &&
      (
        await client.call("POST /v1/agents/{agent}/preview", {
          path: { agent },
          body: { settings, text: example },
          signal,
        })
      ).text,
    [client, agent, settings, example],
  );
  const seen = useRequest(example.text === "" || rules.length === 0 ? undefined : ask, WAIT_MS);
  return (
    <Panel
      title={words.textRules}
      side={
        <Link href={agentAddress(agent)} className="button">
          {words.editAgent}
        </Link>
      }
    >
      <div className="panel-body">
        {detail.error !== undefined && <Failure error={detail.error} again={detail.again} />}
        {seen.error !== undefined && <Failure error={seen.error} />}
        {settings === undefined && detail.error === undefined && (
          <p role="status" className="text-[13px] text-muted">
            {loading}
          </p>
        )}
        {settings !== undefined && rules.length === 0 && (
          <p className="text-[13px] text-muted">{words.noTextRules}</p>
        )}
        {rules.length > 0 && (
          <>
            <ol className="grid gap-1 text-[12.5px]">
              {rules.map((rule, at) => {
                const found = seen.value?.rules.find(({ index }) => index === at);
                return (
                  <li key={at} className="flex flex-wrap items-center gap-2">
                    <span className="text-muted tabular-nums">{at + 1}</span>
                    <code className="[overflow-wrap:anywhere]">{rule.name || rule.pattern}</code>
                    <span className="text-muted">{words.inTarget(words.targets[rule.in] ?? rule.in)}</span>
                    {found && example.text !== "" && (
                      <span className="pill" data-look={found.matches > 0 ? "running" : undefined}>
                        {words.matches(found.matches)}
                      </span>
                    )}
                  </li>
                );
              })}
            </ol>
            <ExampleTextBox example={example} change={setExample} seen={seen.value} />
          </>
        )}
      </div>
    </Panel>
  );
}
