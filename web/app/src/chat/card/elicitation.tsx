import type { CallBlock, ResolveApproval } from "@throughline/client";
import { type FormEvent, useId, useState } from "react";
import { useWords } from "../../i18n/use.ts";

type Question = NonNullable<CallBlock["approval"]>;

/** One requested value: schemas of elicitations are flat. */
interface Field {
  name: string;
  title: string;
  hint: string | undefined;
  kind: "text" | "number" | "boolean" | "choice";
  choices: readonly string[];
  isRequired: boolean;
}

/** Form for the values that a running tool requests. */
export default function Elicitation({
  approval,
  isBusy,
  send,
}: {
  approval: Question;
  isBusy: boolean;
  send(answer: ResolveApproval): void;
}) {
  const words = useWords();
  const fields = fieldsOf(approval.schema);
  const [values, setValues] = useState<Record<string, string>>({});
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    send({ decision: "approve", arguments: valuesOf(fields, values) });
  };
  const set = (name: string, value: string): void => setValues((before) => ({ ...before, [name]: value }));
  return (
    <form onSubmit={submit} className="grid gap-2.5 p-3 text-[13px]">
      <p className="whitespace-pre-wrap">{approval.question}</p>
      {isWebAddress(approval.url) && (
        <a href={approval.url} target="_blank" rel="noreferrer" className="text-accent underline">
          {words.openAddress}: {new URL(approval.url).host}
        </a>
      )}
      {fields.map((field) => (
        <FieldView key={field.name} field={field} value={values[field.name] ?? ""} set={set} />
      ))}
      <div className="flex gap-2">
        <button type="submit" className="button primary" disabled={isBusy}>
          {words.sendAnswer}
        </button>
        <button type="button" className="button" disabled={isBusy} onClick={() => send({ decision: "deny" })}>
          {words.decline}
        </button>
      </div>
    </form>
  );
}

interface FieldViewProps {
  field: Field;
  value: string;
  set(name: string, value: string): void;
}

function FieldView({ field, value, set }: FieldViewProps) {
  const { name, title, hint, kind, choices, isRequired } = field;
  const id = useId();
  if (kind === "boolean") {
    return (
      <label className="flex items-center gap-2">
        <input
          type="checkbox"
          checked={value === "true"}
          onChange={(event) => set(name, String(event.currentTarget.checked))}
        />
        {title}
      </label>
    );
  }
  return (
    <div className="grid gap-1">
      <label htmlFor={id} className="font-semibold">
        {title}
        {hint && <span className="ml-2 font-normal text-muted">{hint}</span>}
      </label>
      {kind === "choice" ? (
        <select
          id={id}
          className="field"
          required={isRequired}
          value={value}
          onChange={(event) => set(name, event.currentTarget.value)}
        >
          <option value="" />
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          className="field"
          required={isRequired}
          type={kind === "number" ? "number" : "text"}
          dir="auto"
          step="any"
          value={value}
          onChange={(event) => set(name, event.currentTarget.value)}
        />
      )}
    </div>
  );
}

function isWebAddress(url: string | undefined): url is string {
  return url !== undefined && /^https?:\/\//i.test(url) && URL.canParse(url);
}

type Shape = { [name: string]: unknown };

function isShape(value: unknown): value is Shape {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fieldsOf(schema: unknown): readonly Field[] {
  if (!isShape(schema) || !isShape(schema.properties)) return [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).map(([name, of]): Field => {
    const shape = isShape(of) ? of : {};
    const choices = Array.isArray(shape.enum) ? shape.enum.map(String) : [];
    const isNumber = shape.type === "number" || shape.type === "integer";
    const plain = isNumber ? "number" : shape.type === "boolean" ? "boolean" : "text";
    return {
      name,
      title: typeof shape.title === "string" ? shape.title : name,
      hint: typeof shape.description === "string" ? shape.description : undefined,
      kind: choices.length > 0 ? "choice" : plain,
      choices,
      isRequired: required.includes(name),
    };
  });
}

function valuesOf(
  fields: readonly Field[],
  values: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const filled: Record<string, unknown> = {};
  for (const { name, kind } of fields) {
    const value = values[name] ?? "";
    if (kind === "boolean") filled[name] = value === "true";
    else if (value !== "") filled[name] = kind === "number" ? Number(value) : value;
  }
  return filled;
}
