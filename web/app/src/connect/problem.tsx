import { ApiError } from "@throughline/client";
import { useWords } from "../i18n/use.ts";
import { useConnectWords } from "./words.ts";

/** What does not work yet and what helps, with the words of whoever refused. */
export function Problem({ error, id }: { error: unknown; id?: string }) {
  const page = useWords();
  const words = useConnectWords();
  if (error === undefined) return null;
  const { code, status, message, remedy, content } =
    error instanceof ApiError ? error : { code: "", status: 0, message: page.unreachable };
  const ours = status === 403 ? words.needsAdmin : words.problem[code];
  return (
    <div id={id} role="alert">
      <b className="whitespace-pre-wrap">{ours ?? page.said(message, code)}</b>
      <p>{ours ? String(content?.why ?? "") : page.helps(remedy, code)}</p>
    </div>
  );
}
