// Remembered decisions. Framework-free.

import type { RememberedApproval } from "@throughline/client";
import { folded } from "@throughline/json";

export interface RememberedRowText {
  tool: string;
  isAllowed: boolean;
  isAlways: boolean;
  /** Covered arguments: any, exactly the original ones, or those that match conditions. */
  arguments: "any" | "these" | "some";
  /** The arguments or conditions, as JSON. */
  detail: string | undefined;
  /** Text of the answered approval; older servers did not store it. */
  question: string | undefined;
}

export function rowOf({ rule, answer, conversation_id }: RememberedApproval): RememberedRowText {
  const tests: unknown = rule?.for_arguments ?? "these";
  const kind = kindOf(tests);
  const detail = kind === "these" ? answer.arguments : kind === "some" ? tests : undefined;
  return {
    tool: rule?.tool ?? textOf(answer.tool) ?? "?",
    isAllowed: (rule?.decision ?? answer.decision) !== "deny",
    isAlways: conversation_id == null,
    arguments: kind,
    detail: detail === undefined ? undefined : typeof detail === "string" ? detail : JSON.stringify(detail),
    question: rule?.question ?? undefined,
  };
}

/** Kind of coverage: the server writes `any` and `these` as strings, and conditions as an object. */
function kindOf(tests: unknown): RememberedRowText["arguments"] {
  return tests === "any" || tests === "these" ? tests : "some";
}

export function isMatch(row: RememberedRowText, words: string): boolean {
  const wanted = folded(words.trim());
  return [row.tool, row.detail, row.question].some(
    (text) => text !== undefined && folded(text).includes(wanted),
  );
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
