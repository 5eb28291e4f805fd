import type { Throughline } from "@throughline/client";
import { useCallback, useState, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Link } from "../shared/link.tsx";
import { go, hash, onPath, search } from "../shared/router.ts";
import { testerAddress } from "../shared/tester-address.ts";
import { Failure } from "../ui/failure.tsx";
import { later } from "../ui/later.tsx";
import { useRequest } from "../ui/use-request.ts";
import { testerLocationOf } from "./model/location.ts";
import { ParsePanel } from "./parse.tsx";
import { PreviewPanel } from "./preview.tsx";
import { RunPanel } from "./run.tsx";
import { ToolsPanel } from "./tools.tsx";
import { useTesterWords } from "./words.ts";

const TextRulesPanel = later(() => import("./text-rules.tsx"));
/** Renders like the chat, and is loaded with it. */
const RecordedView = later(() => import("./recorded.tsx"));
const RECORDED = "?recorded";

/** Tools without a model: their list, their prompt, parsing of replies, and manual calls. */
export default function TesterView() {
  const words = useTesterWords();
  const { tester } = useWords();
  const client = useClient();
  const [agent, setAgent] = useState<string>();
  const found = useRequest(useCallback((signal) => discover(client, agent, signal), [client, agent]));
  const address = useSyncExternalStore(onPath, hash);
  const isRecorded = useSyncExternalStore(onPath, search) === RECORDED;
  const selected = testerLocationOf(address);
  const tools = found.value?.tools.tools ?? [];
  const tool = tools.find((tool) => tool.name === selected.tool);
  return (
    <>
      <header className="flex min-h-13 flex-none flex-wrap items-center gap-x-3 border-b border-line px-4 py-1.5 min-[720px]:px-6">
        <h1 className="text-[15px] font-semibold">{tester}</h1>
        <nav aria-label={tester} className="segments">
          <Link href="/tester" aria-current={isRecorded ? undefined : "page"}>
            {words.workbench}
          </Link>
          <Link href={`/tester${RECORDED}`} aria-current={isRecorded ? "page" : undefined}>
            {words.recorded}
          </Link>
        </nav>
        {found.value && !isRecorded && (
          <AgentChoice agents={found.value.agents} agent={agent} choose={(name) => setAgent(name)} />
        )}
      </header>
      <div className="tester">
        {found.error !== undefined && (
          <div className="col-span-full">
            <Failure error={found.error} again={found.again} />
          </div>
        )}
        {isRecorded && <RecordedView />}
        {found.value && !isRecorded && (
          <>
            <ToolsPanel
              found={found.value.tools}
              chosen={selected.tool}
              choose={(name) => go(testerAddress(name))}
            />
            <PreviewPanel agent={agent} tools={tools} />
            <ParsePanel agent={agent} example={tool ?? tools.find((tool) => tool.offered)} />
            <RunPanel
              key={address}
              agent={agent}
              name={selected.tool}
              tool={tool}
              given={selected.arguments}
            />
            <TextRulesPanel agent={agent ?? byDefault(found.value.agents)} />
          </>
        )}
      </div>
    </>
  );
}

async function discover(client: Throughline, agent: string | undefined, signal: AbortSignal) {
  const query = agent === undefined ? {} : { agent };
  const [agents, tools] = await Promise.all([
    client.call("GET /v1/agents", { signal }),
    client.call("GET /v1/tools", { query, signal }),
  ]);
  return { agents: agents.items, tools };
}

function byDefault(agents: readonly { name: string; is_default: boolean }[]): string {
  return agents.find((one) => one.is_default)?.name ?? "";
}

interface AgentChoiceProps {
  agents: readonly { name: string; is_default: boolean }[];
  agent: string | undefined;
  choose(name: string): void;
}

/** Choice of the agent whose tools and rules apply; hidden if there is only one. */
function AgentChoice({ agents, agent, choose }: AgentChoiceProps) {
  const words = useTesterWords();
  if (agents.length < 2) return null;
  return (
    <label className="ml-auto flex items-center gap-2 text-[13px] text-muted">
      {words.agent}
      <select
        value={agent ?? byDefault(agents)}
        onChange={(event) => choose(event.currentTarget.value)}
        className="field w-auto max-w-44"
      >
        {agents.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
