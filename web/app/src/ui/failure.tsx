import { ApiError } from "@throughline/client";
import { useWords } from "../i18n/use.ts";
import type { Words } from "../i18n/words.ts";

/** An error of the server with its remedy. */
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  const words = useWords();
  const isRefusal = error instanceof ApiError;
  const remedy = isRefusal && words.remedyText(error.remedy, error.code, error.retryAfter);
  return (
    <div role="alert" className="rounded-control bg-error-soft px-3 py-2 text-[13px]">
      {isRefusal && <code className="font-semibold text-error">{error.code}</code>}
      <p className="break-words whitespace-pre-wrap">
        {isRefusal ? words.serverText(error.message, error.code) : messageOf(error, words)}
      </p>
      {remedy && (
        <p className="mt-1">
          <strong>{words.remedy}: </strong>
          {remedy}
        </p>
      )}
      {again && (
        <button type="button" className="button mt-2" onClick={again}>
          {words.tryAgain}
        </button>
      )}
    </div>
  );
}

/** Message for other errors: the server was not reached, or the page has a bug. */
function messageOf(error: unknown, words: Words): string {
  if (error instanceof TypeError) return words.unreachable;
  return error instanceof Error ? error.message : String(error);
}
