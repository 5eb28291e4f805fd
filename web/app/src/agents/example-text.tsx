import type { TextPreview } from "@throughline/client";
import { useId } from "react";
import { ROLES, type Role } from "./model/text-rules.ts";
import { useTextRuleWords } from "./text-words.ts";

/** A sample text to try text rules on. */
export interface ExampleText {
  role: Role;
  text: string;
}

export const NO_TEXT: ExampleText = { role: "assistant", text: "" };

interface ExampleTextProps {
  example: ExampleText;
  change(example: ExampleText): void;
  seen: TextPreview | null | undefined;
}

/** Field for a sample text, with the result of the text rules. */
export function ExampleTextBox({ example, change, seen }: ExampleTextProps) {
  const words = useTextRuleWords();
  const id = useId();
  return (
    <div className="grid gap-2 text-[12.5px]">
      <div className="flex flex-wrap items-center gap-2">
        <label htmlFor={id} className="mr-auto text-[13px] font-semibold">
          {words.exampleText}
        </label>
        <label className="flex items-center gap-1.5 text-muted">
          {words.exampleRole}
          <select
            value={example.role}
            onChange={({ currentTarget: { value } }) =>
              change({ ...example, role: ROLES.find((role) => role === value) ?? "assistant" })
            }
            className="field w-auto py-1"
          >
            {ROLES.map((role) => (
              <option key={role} value={role}>
                {words.oneRole[role]}
              </option>
            ))}
          </select>
        </label>
      </div>
      <textarea
        id={id}
        aria-describedby={`${id}-hint`}
        value={example.text}
        rows={Math.min(10, example.text.split("\n").length + 1)}
        spellCheck={false}
        onChange={(event) => change({ ...example, text: event.currentTarget.value })}
        className="field resize-y font-mono text-[12.5px]"
      />
      <p id={`${id}-hint`} className="text-muted">
        {words.exampleTextHint}
      </p>
      {seen && example.text !== "" && (
        <dl className="grid gap-2" aria-live="polite">
          {(["shown", "model"] as const).map((side) => (
            <div key={side} data-side={side} className="grid gap-1">
              <dt className="text-muted">{side === "shown" ? words.shown : words.sentToModel}</dt>
              <dd className="pre max-h-48 font-mono text-[12.5px]">
                {seen[side] === "" ? <span className="text-muted">{words.nothing}</span> : seen[side]}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
