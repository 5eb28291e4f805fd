import { useCallback, useEffect, useMemo, useState } from "react";
import { useClient } from "../../session/context.tsx";
import { argumentsOf, type FieldErrors, objectDraft } from "../../shared/schema-form/draft.ts";
import { Fields } from "../../shared/schema-form/fields.tsx";
import { formOf, type ObjectField } from "../../shared/schema-form/schema.ts";
import { useRequest } from "../../ui/use-request.ts";

interface ArgumentsFormProps {
  tool: string;
  value: Record<string, unknown>;
  /** The edited arguments; `undefined`: invalid. */
  change(value: Record<string, unknown> | undefined): void;
  /** The tool has no form. */
  none(): void;
}

/** The arguments of a call in the form of its tool, as in the tester. */
export default function ArgumentsForm({ tool, value, change, none }: ArgumentsFormProps) {
  const client = useClient();
  const ask = useCallback(
    (signal: AbortSignal) => client.call("GET /v1/tools/{tool}", { path: { tool }, signal }),
    [client, tool],
  );
  const { value: info, error } = useRequest(ask);
  const form = useMemo(() => (info === undefined ? undefined : formOf(info.parameters)), [info]);
  const isNone = error !== undefined || form?.fields.length === 0;
  useEffect(() => {
    if (isNone) none();
  });
  if (form === undefined || isNone) return null;
  return <Filled form={form} value={value} change={change} />;
}

const NONE: FieldErrors = new Map();

function Filled({
  form,
  value,
  change,
}: Pick<ArgumentsFormProps, "value" | "change"> & { form: ObjectField }) {
  const [draft, setDraft] = useState(() => objectDraft(form, value));
  const [errors, setErrors] = useState(NONE);
  return (
    <Fields
      form={form}
      draft={draft}
      errors={errors}
      change={(next) => {
        const read = argumentsOf(form, next);
        setDraft(next);
        setErrors(read.errors);
        change(read.errors.size === 0 ? read.value : undefined);
      }}
    />
  );
}
