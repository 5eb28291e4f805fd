import type { AgentInfo } from "@throughline/client";
import { Plus } from "lucide-react";
import { useWords } from "../i18n/use.ts";
import { agentAddress } from "../shared/agents-address.ts";
import { Link } from "../shared/link.tsx";
import { useAgentWords } from "./words.ts";

interface AgentListProps {
  agents: readonly AgentInfo[];
  shown: string | undefined;
  make(): void;
}

/** All agents, with their problems. */
export function AgentList({ agents, shown, make }: AgentListProps) {
  const words = useAgentWords();
  const common = useWords();
  return (
    <nav className="agent-list" aria-label={common.agents}>
      <ul className="grid gap-0.5">
        {agents.map(({ name, origin, model, is_default, tools_enabled, fault }) => (
          <li key={origin + name}>
            <Link
              href={agentAddress(name)}
              aria-current={name === shown ? "page" : undefined}
              className="agent-row"
            >
              <span className="block text-[13.5px] font-semibold">{name}</span>
              <span className="block text-[12px] text-muted">
                {[
                  model,
                  is_default && words.byDefault,
                  origin === "file" && words.ofFile,
                  !tools_enabled && words.noTools,
                ]
                  .filter(Boolean)
                  .join(" · ")}
              </span>
              {fault && <span className="block text-[12px] text-error">{fault}</span>}
            </Link>
          </li>
        ))}
      </ul>
      <button type="button" className="button mt-2" onClick={make}>
        <Plus aria-hidden size={13} />
        {words.new}
      </button>
    </nav>
  );
}
