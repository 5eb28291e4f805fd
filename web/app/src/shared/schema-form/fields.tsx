import { Plus, X } from "lucide-react";
import { type ReactNode, useId } from "react";
import { IconButton } from "../../ui/icon-button.tsx";
import { type Draft, draftOf, type FieldErrors, type ObjectDraft } from "./draft.ts";
import type { Field, ObjectField } from "./schema.ts";
import { useSchemaFormWords } from "./words.ts";

interface FieldsProps {
  form: ObjectField;
  draft: ObjectDraft;
  errors: FieldErrors;
  change(draft: ObjectDraft): void;
  /** JSON pointer of this object, `/place`. */
  at?: string;
}

/** The fields of an object. */
export function Fields({ form, draft, errors, change, at = "" }: FieldsProps) {
  const words = useSchemaFormWords();
  const rest = Object.keys(draft.rest);
  return (
    <div className="grid gap-3">
      {form.fields.length === 0 && rest.length === 0 && (
        <p className="text-[12.5px] text-muted">{words.noParameters}</p>
      )}
      {form.fields.map(([name, field]) => (
        <FieldView
          key={name}
          name={name}
          field={field}
          draft={draft.fields[name] ?? draftOf(field, undefined)}
          errors={errors}
          at={`${at}/${name}`}
          change={(one) => change({ ...draft, fields: { ...draft.fields, [name]: one } })}
        />
      ))}
      {rest.length > 0 && <p className="text-[12.5px] text-muted">{words.extraArguments(rest.join(", "))}</p>}
    </div>
  );
}

interface FieldProps<F extends Field = Field> {
  name: string;
  field: F;
  draft: Draft;
  errors: FieldErrors;
  at: string;
  change(draft: Draft): void;
  /** Button that removes an item from its list. */
  side?: ReactNode;
}

function FieldView(props: FieldProps) {
  const { field, draft } = props;
  if (draft.kind === "list" && field.kind === "list")
    return <ListView {...props} field={field} draft={draft} />;
  if (draft.kind === "object" && field.kind === "object")
    return <ObjectView {...props} field={field} draft={draft} />;
  return <OneView {...props} />;
}

/** One value with its name, its description and its error. */
function OneView(props: FieldProps) {
  const { name, field, errors, at, side } = props;
  const words = useSchemaFormWords();
  const id = useId();
  const error = errors.get(at);
  const describedBy = [field.description && `${id}-about`, error && `${id}-flaw`].filter(Boolean).join(" ");
  return (
    <div>
      <div className="flex min-h-6 items-center gap-2 text-[13px]">
        <label htmlFor={id} className="font-medium [overflow-wrap:anywhere]">
          {name}
        </label>
        <Facts field={field} />
        <span className="ml-auto">{side}</span>
      </div>
      <Control
        {...props}
        id={id}
        about={{
          ...(describedBy === "" ? {} : { "aria-describedby": describedBy }),
          "aria-invalid": error !== undefined,
          "aria-required": field.isRequired,
        }}
      />
      {field.description && (
        <p id={`${id}-about`} className="mt-0.5 text-[12px] text-muted">
          {field.description}
        </p>
      )}
      {error && (
        <p id={`${id}-flaw`} className="text-[12.5px] text-error">
          {words.fieldError[error]}
        </p>
      )}
    </div>
  );
}

function Facts({ field }: { field: Field }) {
  const words = useSchemaFormWords();
  const isNumber = field.kind === "number";
  const facts = [
    field.isRequired && words.required,
    isNumber && (field.minimum !== undefined || field.maximum !== undefined)
      ? `${field.minimum ?? ""} … ${field.maximum ?? ""}`.trim()
      : undefined,
    field.fallback !== undefined && words.byDefault(field.fallback),
  ];
  return <span className="text-[12px] text-muted">{facts.filter(Boolean).join(" · ")}</span>;
}

interface ControlProps extends FieldProps {
  id: string;
  about: { "aria-describedby"?: string; "aria-invalid": boolean; "aria-required": boolean };
}

function Control({ field, draft, change, id, about }: ControlProps) {
  const words = useSchemaFormWords();
  const text = draft.kind === "typed" || draft.kind === "json" ? draft.text : "";
  const type = (text: string): void => change({ kind: draft.kind === "json" ? "json" : "typed", text });
  if (draft.kind === "json" || (field.kind === "text" && (field.isLong || text.includes("\n")))) {
    const isJson = draft.kind === "json";
    return (
      <textarea
        id={id}
        {...about}
        value={text}
        rows={Math.min(12, Math.max(2, text.split("\n").length))}
        spellCheck={!isJson}
        placeholder={isJson ? "JSON" : undefined}
        onChange={(event) => type(event.currentTarget.value)}
        className={`field resize-y ${isJson ? "font-mono text-[12.5px]" : ""}`}
      />
    );
  }
  if (field.kind === "boolean" || field.kind === "choice") {
    const choices: readonly unknown[] = field.kind === "choice" ? field.choices : [true, false];
    return (
      <select
        id={id}
        {...about}
        value={text}
        onChange={(event) => type(event.currentTarget.value)}
        className="field"
      >
        <option value="">{words.notSet}</option>
        {choices.map((choice) => (
          <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
            {field.kind === "boolean" ? (choice === true ? words.yes : words.no) : choiceText(choice)}
          </option>
        ))}
      </select>
    );
  }
  return (
    <input
      id={id}
      {...about}
      value={text}
      // A field of type `number` hides input that is not a number.
      inputMode={field.kind === "number" ? (field.isWhole ? "numeric" : "decimal") : "text"}
      autoComplete="off"
      onChange={(event) => type(event.currentTarget.value)}
      className="field"
    />
  );
}

function choiceText(choice: unknown): string {
  return typeof choice === "string" && choice !== "" ? choice : JSON.stringify(choice);
}

/** A name with fields below it. */
function Nested({
  name,
  field,
  errors,
  at,
  side,
  children,
}: Omit<FieldProps, "draft" | "change"> & { children: ReactNode }) {
  const words = useSchemaFormWords();
  const error = errors.get(at);
  return (
    <fieldset className="min-w-0 border-l-2 border-line pl-3">
      <legend className="float-left flex min-h-6 w-full items-center gap-2 text-[13px]">
        <span className="font-medium">{name}</span>
        <Facts field={field} />
        <span className="ml-auto flex gap-1">{side}</span>
      </legend>
      <div className="clear-both grid gap-3">
        {field.description && <p className="text-[12px] text-muted">{field.description}</p>}
        {children}
        {error && <p className="text-[12.5px] text-error">{words.fieldError[error]}</p>}
      </div>
    </fieldset>
  );
}

function ListView(
  props: FieldProps<Extract<Field, { kind: "list" }>> & { draft: Extract<Draft, { kind: "list" }> },
) {
  const { field, draft, errors, at, change } = props;
  const words = useSchemaFormWords();
  const put = (items: readonly Draft[]): void =>
    change({ kind: "list", isGiven: field.isRequired || items.length > 0, items });
  return (
    <Nested {...props}>
      {draft.items.map((item, index) => (
        <FieldView
          // Items have no keys: they are identified by index.
          key={index}
          name={words.item(index + 1)}
          field={field.item}
          draft={item}
          errors={errors}
          at={`${at}/${index}`}
          change={(one) => put(draft.items.with(index, one))}
          side={
            <IconButton
              label={words.removeItem(index + 1)}
              onClick={() => put(draft.items.toSpliced(index, 1))}
            >
              <X aria-hidden size={14} />
            </IconButton>
          }
        />
      ))}
      <div>
        <button
          type="button"
          className="button"
          aria-label={`${words.addItem}: ${props.name}`}
          onClick={() => put([...draft.items, draftOf(field.item, undefined)])}
        >
          <Plus aria-hidden size={13} />
          {words.addItem}
        </button>
      </div>
    </Nested>
  );
}

function ObjectView(props: FieldProps<ObjectField> & { draft: ObjectDraft }) {
  const { field, draft, errors, at, change, side } = props;
  const words = useSchemaFormWords();
  const toggle = !field.isRequired && (
    <button
      type="button"
      className="button quiet"
      aria-label={`${draft.isGiven ? words.unset : words.set}: ${props.name}`}
      onClick={() => change({ ...draft, isGiven: !draft.isGiven })}
    >
      {draft.isGiven ? words.unset : words.set}
    </button>
  );
  return (
    <Nested
      {...props}
      side={
        <>
          {toggle}
          {side}
        </>
      }
    >
      {draft.isGiven && <Fields form={field} draft={draft} errors={errors} at={at} change={change} />}
    </Nested>
  );
}
