// An example reply. Framework-free.

import type { ToolInfo } from "@throughline/client";
import { type Field, formOf } from "./schema.ts";

/** A reply that calls this tool in text mode. */
export function exampleReply(
  tool: Pick<ToolInfo, "wire_name" | "parameters">,
  before: string,
  after: string,
): string {
  const lines = [
    ["tool_name", tool.wire_name] as const,
    ...Object.entries(exampleArguments(tool)).map(([name, value]) => [name, asText(value)] as const),
  ].map(([name, value]) => `${name}:「始」${value}「末」`);
  return `${before}\n\n<<<[TOOL_REQUEST]>>>\n${lines.join(",\n")}\n<<<[END_TOOL_REQUEST]>>>\n\n${after}\n`;
}

/** Required arguments with values of the right types. */
export function exampleArguments(tool: Pick<ToolInfo, "parameters">): Record<string, unknown> {
  const given = formOf(tool.parameters).fields.filter(([, field]) => field.isRequired);
  return Object.fromEntries(given.map(([name, field]) => [name, exampleOf(field)]));
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A value of the right type. */
function exampleOf(field: Field): unknown {
  switch (field.kind) {
    case "text":
      return "Paris";
    case "number":
      return field.minimum ?? 1;
    case "boolean":
      return true;
    case "choice":
      return field.choices[0] ?? null;
    case "list":
      return [exampleOf(field.item)];
    case "object":
      return Object.fromEntries(
        field.fields.filter(([, one]) => one.isRequired).map(([name, one]) => [name, exampleOf(one)]),
      );
    case "json":
      return {};
  }
}
