import type { AgentField, ApiError, FieldGroupInfo } from "@throughline/client";
import { useId } from "react";
import { useWords } from "../i18n/use.ts";
import { duration } from "../shared/format.ts";
import { useSchemaFormWords } from "../shared/schema-form/words.ts";
import { failed } from "../ui/failed.ts";
import { type Draft, isAt } from "./model/form.ts";
import { useAgentWords } from "./words.ts";

/** The form, as its sections use it. */
export interface Form {
  draft: Draft;
  change(more: Partial<Draft>): void;
  /** The server's refusal of the last save. */
  problem: ApiError | undefined;
  /** Models to choose from. */
  models: readonly string[];
  /** Known properties of the selected model. */
  facts: string;
  /** A remark about the selected model. */
  remark: string | undefined;
}

/** The fields of a section, as the server describes them. */
export function Fields({ part: { help, fields }, form }: { part: FieldGroupInfo; form: Form }) {
  return (
    <>
      {help && <p className="text-[12.5px] text-muted">{help}</p>}
      <div className="agent-fields">
        {fields.map((field) => (
          <Field key={field.path} field={field} form={form} />
        ))}
      </div>
    </>
  );
}

const LONG = new Set(["text", "json", "lines"]);

function Field({ field, form }: { field: AgentField; form: Form }) {
  const { path, kind, choices, label, help } = field;
  const id = useId();
  const { draft, problem } = form;
  const typed = draft.fields[path] ?? "";
  const isWrong = isAt(problem?.param, path);
  const put = (value: string | boolean): void => form.change({ fields: { ...draft.fields, [path]: value } });
  const about = {
    id,
    "aria-describedby": `${id}-help`,
    "aria-invalid": isWrong,
    className: `field ${LONG.has(kind) ? "resize-y font-mono text-[12.5px]" : ""}`,
    value: String(typed),
    onChange: (event: { currentTarget: { value: string } }) => put(event.currentTarget.value),
  };
  return (
    <div className={LONG.has(kind) ? "col-span-full" : undefined}>
      <div className="flex min-h-6 flex-wrap items-center gap-x-2 text-[13px]">
        {kind === "switch" && (
          <input
            {...about}
            type="checkbox"
            className="switch"
            checked={typed === true}
            onChange={(event) => put(event.currentTarget.checked)}
          />
        )}
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        <UnitAndDefault field={field} typed={typed} />
      </div>
      {LONG.has(kind) && (
        <textarea
          {...about}
          rows={Math.min(24, about.value.split("\n").length + (kind === "text" ? 4 : 1))}
          spellCheck={kind === "text"}
        />
      )}
      {kind === "choice" && (
        <select {...about}>
          {choices?.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )}
      {/* A field of type `number` hides input that is not a number. */}
      {kind === "number" && (
        <input {...about} inputMode="decimal" placeholder={String(field.default ?? "")} autoComplete="off" />
      )}
      {kind === "model" && (
        <>
          <input {...about} list={`${id}-list`} autoComplete="off" />
          <datalist id={`${id}-list`}>
            {form.models.map((model) => (
              <option key={model} value={model} />
            ))}
          </datalist>
        </>
      )}
      <div id={`${id}-help`} className="mt-0.5 text-[12px] text-muted">
        {help}
        {kind === "model" && form.facts && <p>{form.facts}</p>}
        {kind === "model" && form.remark && <p className="text-waiting">{form.remark}</p>}
        {isWrong && <FieldError problem={problem} />}
      </div>
    </div>
  );
}

/** Unit, its meaning, and the default of an empty field. */
export function UnitAndDefault({
  field: { unit, default: fallback },
  typed,
}: {
  field: AgentField;
  typed: string | boolean;
}) {
  const words = useAgentWords();
  const tester = useSchemaFormWords();
  const ms = Number(typed || fallback);
  const facts = [
    unit && (words.units[unit] ?? unit),
    unit === "ms" && ms > 0 && duration(ms),
    typeof fallback === "boolean"
      ? tester.byDefault(fallback ? words.on : words.off)
      : typeof fallback !== "object" && fallback !== undefined && tester.byDefault(String(fallback)),
  ];
  return <span className="text-[12px] text-muted tabular-nums">{facts.filter(Boolean).join(" · ")}</span>;
}

export function FieldError({ problem }: { problem: ApiError | undefined }) {
  const words = useWords();
  return (
    <p className="text-[12.5px] whitespace-pre-wrap text-error [overflow-wrap:anywhere]">
      {problem && failed(problem, words)}
    </p>
  );
}
