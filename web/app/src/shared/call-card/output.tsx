import { csvOfRows, pretty } from "@throughline/json";
import { Sheet } from "lucide-react";
import { useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { size as sizeOf } from "../format.ts";
import { Section } from "./section.tsx";
import { useShown, Value, Views } from "./value.tsx";

interface OutputProps {
  title?: string;
  /** Text that is loaded so far. */
  text: string;
  value: unknown;
  /** Size of the whole output in bytes. */
  size: number | undefined;
  isLive: boolean;
  toolId: string | undefined;
}

/** Output of a tool. */
export function Output({ title, text, value, size, isLive, toolId }: OutputProps) {
  const words = useWords();
  const whole = useWhole(toolId);
  const shown = whole.text ?? text;
  const isCut = size !== undefined && whole.text === undefined && size > bytesOf(text);
  const { shape, view, choose } = useShown(value ?? shown);
  return (
    <Section
      title={title ?? words.output}
      side={
        <>
          <Views shape={shape} view={view} choose={choose} />
          {shape.kind === "rows" && view === "table" && (
            <CopyButton
              icon={Sheet}
              text={() => csvOfRows(shape.columns, shape.rows)}
              label={words.copyTable}
            />
          )}
          <CopyButton text={() => (value === undefined ? shown : pretty(value))} />
        </>
      }
    >
      {value === undefined && shown === "" ? (
        <p className="text-[12.5px] text-muted">{words.noOutput}</p>
      ) : (
        <Value shape={shape} view={view} isLive={isLive} />
      )}
      {size !== undefined && whole.text !== undefined && bytesOf(whole.text) < size && (
        <p className="mt-1 text-[12.5px] text-muted">
          {words.keptOnly(sizeOf(bytesOf(whole.text)), sizeOf(size))}
        </p>
      )}
      {isCut && (
        <button type="button" className="button mt-2" onClick={whole.load}>
          {words.loadAll(sizeOf(size))}
        </button>
      )}
    </Section>
  );
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Loads the whole output; events have only its beginning. */
function useWhole(toolId: string | undefined) {
  const client = useClient();
  const [text, setText] = useState<string>();
  const load = async (): Promise<void> => {
    if (toolId === undefined) return;
    const { call } = await client.call("GET /v1/history/calls/{tool_id}", { path: { tool_id: toolId } });
    setText(call.output ?? "");
  };
  // If that fails, the beginning stays.
  return { text, load: () => void load().catch(() => undefined) };
}
