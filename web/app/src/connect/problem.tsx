import { ApiError } from "@throughline/client";
import type { ReactNode } from "react";
import { useWords } from "../i18n/use.ts";
import { useConnectWords } from "./words.ts";

interface ProblemProps {
  error: unknown;
  id?: string;
  /** No key was typed, and none is stored. */
  lacksKey?: boolean;
  /** Further remedies. */
  children?: ReactNode;
}

/** An error with its remedy, in the words of whichever server refused. */
export function Problem({ error, id, lacksKey, children }: ProblemProps) {
  const page = useWords();
  const words = useConnectWords();
  if (error === undefined) return null;
  const { code, status, message, remedy, content } =
    error instanceof ApiError ? error : { code: "", status: 0, message: page.unreachable };
  const ours =
    words.problem[lacksKey && code === "wrong_key" ? "no_key" : code] ??
    (status === 403 ? words.needsAdmin : undefined);
  return (
    <div id={id} role="alert">
      <b className="whitespace-pre-wrap">{ours ?? page.serverText(message, code)}</b>
      <p>{ours ? String(content?.why ?? "") : page.remedyText(remedy, code)}</p>
      {children}
    </div>
  );
}
