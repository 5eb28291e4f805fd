// Answers that hold for calls to come. Framework-free.

import type { RememberedApproval } from "@throughline/client";
import { folded } from "@throughline/json";

export interface RememberedRowText {
  tool: string;
  isAllowed: boolean;
  isAlways: boolean;
  /** Of which arguments it is: any, exactly those of then, or those that pass tests. */
  arguments: "any" | "these" | "some";
  /** The arguments, or the tests, as JSON. */
  detail: string | undefined;
  /** The question that was answered; earlier servers did not keep it. */
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

/** The server writes `any` and `these` as words, and tests as an object. */
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
