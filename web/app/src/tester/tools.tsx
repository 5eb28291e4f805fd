import type { ToolInfo, ToolList, ToolSourceInfo } from "@throughline/client";
import { folded } from "@throughline/json";
import { useState } from "react";
import { useWords } from "../i18n/use.ts";
import { ToolIcon } from "../shared/call-card/icon.tsx";
import { Panel } from "../ui/panel.tsx";
import { useTesterWords } from "./words.ts";

interface ToolsPanelProps {
  found: ToolList;
  chosen: string | undefined;
  choose(name: string): void;
}

/** All tools by source, with the errors of sources. */
export function ToolsPanel({ found, chosen, choose }: ToolsPanelProps) {
  const words = useTesterWords();
  const { noResults } = useWords();
  const [filter, setFilter] = useState("");
  const wanted = folded(filter.trim());
  const shown = found.tools.filter((tool) =>
    [tool.name, tool.title, tool.source].some((text) => folded(text).includes(wanted)),
  );
  const sources = found.sources.filter(
    (source) => wanted === "" || shown.some((tool) => tool.source === source.name),
  );
  const offered = found.tools.filter((tool) => tool.offered).length;
  return (
    <Panel
      title={words.tools}
      badge={
        <span className="pill" data-look="good">
          {words.offeredOf(offered, found.tools.length)}
        </span>
      }
      side={
        <input
          type="search"
          className="field w-44"
          placeholder={words.filter}
          aria-label={words.filter}
          value={filter}
          onChange={(event) => setFilter(event.currentTarget.value)}
        />
      }
    >
      {found.tools.length === 0 && <p className="p-4 text-[13px] text-muted">{words.noTools}</p>}
      {found.tools.length > 0 && shown.length === 0 && (
        <p className="p-4 text-[13px] text-muted">{noResults}</p>
      )}
      {found.unknown_toggles.length > 0 && (
        <p className="px-4 pt-3 text-[12.5px] text-waiting">
          {words.unknownToggles(found.unknown_toggles.join(", "))}
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="panel-scroll" tabIndex={0}>
        {sources.map((source) => (
          <Source
            key={source.name}
            source={source}
            tools={shown.filter((tool) => tool.source === source.name)}
            chosen={chosen}
            choose={choose}
          />
        ))}
      </section>
    </Panel>
  );
}

interface SourceProps {
  source: ToolSourceInfo;
  tools: readonly ToolInfo[];
  chosen: string | undefined;
  choose(name: string): void;
}

function Source({ source, tools, chosen, choose }: SourceProps) {
  const words = useTesterWords();
  return (
    <section>
      <div className="label px-4 pt-3">
        <h3 className="normal-case">{source.name}</h3>
        <span>{words.toolsOf(source.tools)}</span>
      </div>
      {source.faults.map((fault) => (
        <p
          key={`${fault.tool}${fault.message}`}
          className="mx-4 mt-1 rounded-control bg-error-soft px-3 py-1.5 text-[12.5px]"
        >
          {fault.tool && <code className="font-semibold text-error">{words.faultOf(fault.tool)}</code>}
          {fault.message}
          {fault.remedy && <span className="block">{fault.remedy}</span>}
        </p>
      ))}
      <ul>
        {tools.map((tool) => (
          <li key={tool.name}>
            <ToolRow tool={tool} isChosen={tool.name === chosen} choose={() => choose(tool.name)} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function ToolRow({ tool, isChosen, choose }: { tool: ToolInfo; isChosen: boolean; choose(): void }) {
  const words = useTesterWords();
  const { effect, serverText } = useWords();
  const effects: Readonly<Record<string, string>> = effect;
  const facts = [effects[tool.effect] ?? tool.effect, tool.runs_on === "client" && words.inClient];
  return (
    <button type="button" className="tool-row" aria-current={isChosen || undefined} onClick={choose}>
      <ToolIcon name={tool.name} source={tool.source} />
      <span className="min-w-0 flex-1">
        <span className="flex flex-wrap items-center gap-x-2">
          <span className="font-mono text-[12.5px] font-semibold [overflow-wrap:anywhere]">{tool.name}</span>
          <span className="text-[12px] text-muted">{facts.filter(Boolean).join(" · ")}</span>
        </span>
        <span className="block truncate text-[12.5px] text-muted" title={tool.description}>
          {!tool.offered && tool.why_not ? serverText(tool.why_not) : tool.description}
        </span>
      </span>
      {!tool.offered && <span className="pill">{words.notOffered}</span>}
      {tool.offered && tool.asks && (
        <span className="pill" data-look="waiting">
          {words.asksFirst}
        </span>
      )}
    </button>
  );
}
