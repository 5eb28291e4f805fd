import { pretty } from "@throughline/json";
import { useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { size as sizeOf } from "../clock.ts";
import { Section } from "./section.tsx";
import { useShown, Value, Views } from "./value.tsx";

interface OutputProps {
  title?: string;
  /** As far as it is here. */
  text: string;
  value: unknown;
  /** Bytes of all of it. */
  size: number | undefined;
  isLive: boolean;
  toolId: string | undefined;
}

/** What a tool gave. */
export function Output({ title, text, value, size, isLive, toolId }: OutputProps) {
  const words = useWords();
  const whole = useWhole(toolId);
  const shown = whole.text ?? text;
  const isCut =
    size !== undefined && whole.text === undefined && size > new TextEncoder().encode(text).length;
  const { shape, view, choose } = useShown(value ?? shown);
  return (
    <Section
      title={title ?? words.output}
      side={
        <>
          <Views shape={shape} view={view} choose={choose} />
          <CopyButton text={() => (value === undefined ? shown : pretty(value))} />
        </>
      }
    >
      {value === undefined && shown === "" ? (
        <p className="text-[12.5px] text-muted">{words.noOutput}</p>
      ) : (
        <Value shape={shape} view={view} isLive={isLive} />
      )}
      {isCut && (
        <button type="button" className="button mt-2" onClick={whole.load}>
          {words.loadAll(sizeOf(size))}
        </button>
      )}
    </Section>
  );
}

/** The whole output, which the events have only the beginning of. */
function useWhole(toolId: string | undefined) {
  const client = useClient();
  const [text, setText] = useState<string>();
  const load = async (): Promise<void> => {
    if (toolId === undefined) return;
    const { call } = await client.call("GET /v1/history/calls/{tool_id}", { path: { tool_id: toolId } });
    setText(call.output ?? "");
  };
  // What cannot be had leaves what is there.
  return { text, load: () => void load().catch(() => undefined) };
}
