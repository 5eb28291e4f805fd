import type { PromptPreviewPage, ToolInfo } from "@throughline/client";
import { type ReactNode, useCallback, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import { useRequest } from "../ui/use-request.ts";
import { type TesterWords, useTesterWords } from "./words.ts";

export type Way = PromptPreviewPage["items"][number];

/** Prompt text of `{{ tools }}` in every format, with its costs. */
export function PreviewPanel({ agent, tools }: { agent: string | undefined; tools: readonly ToolInfo[] }) {
  const words = useTesterWords();
  const client = useClient();
  const ask = useCallback(
    (signal: AbortSignal) =>
      client.call("GET /v1/prompts", { query: agent === undefined ? {} : { agent }, signal }),
    [client, agent],
  );
  const { value, error, again } = useRequest(ask);
  const ways = value?.items ?? [];
  return (
    <WaysPanel
      title={words.preview}
      ways={ways}
      // Text mode first: there the tools are readable.
      first={ways.find((way) => way.protocol)}
      textOf={(way) => (way.protocol ? way.tools_text : definitionsOf(way, tools))}
    >
      {error !== undefined && <Failure error={error} again={again} />}
    </WaysPanel>
  );
}

interface WaysProps {
  title: string;
  ways: readonly Way[];
  /** Format that is shown first. */
  first: Way | undefined;
  textOf(way: Way): string;
  /** Content above the formats. */
  children: ReactNode;
}

/** Formats of tools, one at a time: its text, and its costs. */
export function WaysPanel({ title, ways, first, textOf, children }: WaysProps) {
  const words = useTesterWords();
  const { serverText } = useWords();
  const [chosen, choose] = useState<string>();
  const way = ways.find((way) => keyOf(way) === chosen) ?? first ?? ways[0];
  const text = way && textOf(way);
  return (
    <Panel
      title={title}
      badge={
        way && (
          <span className="pill" data-look="running">
            {words.tokens(way.tokens.total, way.tokens.counting === "exact")}
          </span>
        )
      }
      side={
        way && (
          <>
            {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out like this everywhere */}
            <div role="group" aria-label={words.protocolOf} className="segments">
              {ways.map((one) => (
                <button
                  key={keyOf(one)}
                  type="button"
                  aria-pressed={one === way}
                  onClick={() => choose(keyOf(one))}
                >
                  {labelOf(one, words)}
                </button>
              ))}
            </div>
            <CopyButton text={() => text ?? ""} />
          </>
        )
      }
    >
      <div className="panel-body">
        {children}
        {way && <Costs way={way} />}
        {way && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
          <pre className="pre max-h-125 min-h-24 flex-1" tabIndex={0}>
            {text || words.noneIncluded}
          </pre>
        )}
        {way && way.unmatched.length > 0 && (
          <p className="text-[12.5px] text-waiting">{words.unmatched(way.unmatched.join(", "))}</p>
        )}
        {way && way.left_out.length > 0 && (
          <details className="text-[12.5px] text-muted">
            <summary>{words.leftOut(way.left_out.length)}</summary>
            <ul className="mt-1 grid gap-1">
              {way.left_out.map(({ name, why }) => (
                <li key={name}>
                  <code className="font-semibold">{name}</code> {serverText(why)}
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </Panel>
  );
}

function keyOf({ mode, protocol }: Way): string {
  return protocol ?? mode;
}

function labelOf(way: Way, words: TesterWords): string {
  return way.protocol?.toUpperCase() ?? (way.mode === "native" ? words.native : way.mode);
}

/** Natively the tools are not text: then their definitions, by wire name. */
export function definitionsOf(way: Way, tools: readonly ToolInfo[]): string {
  const included = new Set(way.tools);
  const definitions = tools
    .filter(({ name, wire_name }) => included.has(name) || included.has(wire_name))
    .map(({ wire_name, description, parameters }) => ({ name: wire_name, description, parameters }));
  return definitions.length === 0 ? "" : JSON.stringify(definitions, null, 2);
}

function Costs({ way }: { way: Way }) {
  const words = useTesterWords();
  const isExact = way.tokens.counting === "exact";
  const costs = way.tokens.sources.map(({ source, tools, tokens }) =>
    words.costs(source, words.toolsOf(tools), words.tokens(tokens, isExact)),
  );
  return (
    <p className="text-[12px] text-muted">
      {[...(way.protocol ? [] : [words.nativeHint]), ...costs].join(" · ")}
    </p>
  );
}
