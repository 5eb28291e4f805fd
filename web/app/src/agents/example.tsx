import type { AgentPreview, ToolInfo } from "@throughline/client";
import { useId } from "react";
import { useWords } from "../i18n/use.ts";
import { OUTLOOK_TONES } from "../shared/outlook.ts";
import { objectFrom } from "../shared/schema-form/draft.ts";
import { exampleArguments } from "../shared/schema-form/example.ts";
import { useTesterWords } from "../tester/words.ts";
import { useAgentWords } from "./words.ts";

/** A sample call to try the approval rules on. */
export interface Example {
  tool: string;
  text: string;
}

interface ExampleProps {
  tools: readonly ToolInfo[];
  example: Example;
  change(example: Example): void;
  outlook: AgentPreview["call"];
}

/** Form for a sample call. */
export function ExampleCall({ tools, example, change, outlook }: ExampleProps) {
  const words = useAgentWords();
  const common = useWords();
  const tester = useTesterWords();
  const id = useId();
  const isGood = objectFrom(example.text) !== undefined;
  const choose = (name: string): void => {
    const tool = tools.find((tool) => tool.name === name);
    change({ tool: name, text: tool ? JSON.stringify(exampleArguments(tool), null, 2) : example.text });
  };
  const expected =
    (["runs", "asks", "denied"] as const).find((one) => one === outlook?.outlook) ?? "not_started";
  return (
    <section aria-labelledby={id} className="grid gap-2 border-t border-line pt-3">
      <h3 id={id} className="text-[13px] font-semibold">
        {words.example}
      </h3>
      <p className="text-[12.5px] text-muted">{words.exampleHint}</p>
      <select
        aria-label={words.chooseTool}
        value={example.tool}
        onChange={(event) => choose(event.currentTarget.value)}
        className="field"
      >
        <option value="">{words.chooseTool}</option>
        {tools.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      {example.tool !== "" && (
        <textarea
          aria-label={common.arguments}
          aria-invalid={!isGood}
          value={example.text}
          rows={Math.min(12, example.text.split("\n").length + 1)}
          spellCheck={false}
          onChange={(event) => change({ ...example, text: event.currentTarget.value })}
          className="field resize-y font-mono text-[12.5px]"
        />
      )}
      {!isGood && <p className="text-[12.5px] text-error">{common.notJson}</p>}
      {isGood && outlook && example.tool !== "" && (
        <p role="status" className="flex flex-wrap items-center gap-2 text-[12.5px]">
          <span className="pill" data-look={OUTLOOK_TONES[expected]}>
            {tester.outlook[expected]}
          </span>
          {outlook.rule && <code className="[overflow-wrap:anywhere]">{outlook.rule}</code>}
          <span className="text-muted [overflow-wrap:anywhere]">{common.serverText(outlook.why ?? "")}</span>
        </p>
      )}
    </section>
  );
}
