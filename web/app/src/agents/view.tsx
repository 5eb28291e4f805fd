import type { Throughline } from "@throughline/client";
import { useCallback, useState, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { agentAddress, agentIn } from "../shared/agents-address.ts";
import { go, onPath, search } from "../shared/router.ts";
import { Failure } from "../ui/failure.tsx";
import { useRequest } from "../ui/use-request.ts";
import { Editor } from "./editor.tsx";
import { AgentList } from "./list.tsx";
import { NameDialog } from "./name.tsx";
import { useAgentWords } from "./words.ts";

/** All agents with their settings. The address selects the one that is shown. */
export default function AgentsView() {
  const words = useAgentWords();
  const common = useWords();
  const client = useClient();
  const named = agentIn(useSyncExternalStore(onPath, search));
  const spoken = useSyncExternalStore(language.subscribe, language.get);
  const known = useRequest(useCallback((signal) => know(client, spoken, signal), [client, spoken]));
  const agents = known.value?.agents ?? [];
  const byDefault = agents.find((agent) => agent.is_default) ?? agents[0];
  const shown = named ?? byDefault?.name;
  const detail = useRequest(
    useCallback(
      async (signal: AbortSignal) =>
        shown === undefined
          ? undefined
          : await client.call("GET /v1/agents/{agent}", { path: { agent: shown }, signal }),
      [client, shown],
    ),
  );
  const [isNaming, setNaming] = useState(false);
  const make = async (name: string): Promise<void> => {
    const settings = { model: byDefault?.model ?? "", tool_call: { enabled: true } };
    await client.call("POST /v1/agents", { body: { name, settings } });
    known.again();
    go(agentAddress(name));
  };
  const error = known.error ?? detail.error;
  return (
    <>
      <header className="flex min-h-13 flex-none items-center border-b border-line px-4 min-[720px]:px-6">
        <h1 className="text-[15px] font-semibold">{common.agents}</h1>
      </header>
      <div className="agents" data-open={named !== undefined}>
        {known.value && <AgentList agents={agents} shown={shown} make={() => setNaming(true)} />}
        {error !== undefined && <Failure error={error} again={known.error ? known.again : detail.again} />}
        {known.value && detail.value?.name === shown && detail.value && (
          <Editor
            key={shown}
            agent={detail.value}
            parts={known.value.parts}
            upstreams={known.value.upstreams}
            refresh={known.again}
          />
        )}
      </div>
      {isNaming && <NameDialog title={words.new} first="" make={make} close={() => setNaming(false)} />}
    </>
  );
}

async function know(client: Throughline, language: string, signal: AbortSignal) {
  const [fields, agents, upstreams] = await Promise.all([
    client.call("GET /v1/agent-fields", { query: { language }, signal }),
    client.call("GET /v1/agents", { signal }),
    client.call("GET /v1/upstreams", { signal }),
  ]);
  return { parts: fields.parts, agents: agents.items, upstreams: upstreams.items };
}
