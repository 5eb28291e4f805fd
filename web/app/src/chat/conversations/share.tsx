import type { ConversationInfo } from "@throughline/client";
import { useCallback, useEffect, useId, useRef, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { useRows } from "../../shared/paged-rows.tsx";
import { ShareLinks } from "../../sharing/links.tsx";
import { useSharedWords } from "../../sharing/words.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { failed } from "../../ui/failed.ts";

const DAY_MS = 86_400_000;
/** Lifetimes of a link, in days; 0 = until it is revoked. */
const TERMS = { never: 0, day: 1, week: 7, month: 30 } as const;
type Term = keyof typeof TERMS;

/** Creates links to a conversation, and lists the existing ones. */
export default function Share({ conversation, close }: { conversation: ConversationInfo; close(): void }) {
  const words = useWords();
  const texts = useSharedWords();
  const client = useClient();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const [term, setTerm] = useState<Term>("never");
  const [link, setLink] = useState<string>();
  const [failure, setFailure] = useState<unknown>();
  const page = useCallback(
    (cursor: string | undefined, signal: AbortSignal) =>
      client.call("GET /v1/shares", {
        query: { conversation_id: conversation.id, ...(cursor === undefined ? {} : { cursor }) },
        signal,
      }),
    [client, conversation.id],
  );
  const links = useRows(page);
  const create = async (): Promise<void> => {
    setFailure(undefined);
    try {
      const days = TERMS[term];
      const made = await client.call("POST /v1/conversations/{conversation_id}/shares", {
        path: { conversation_id: conversation.id },
        body: days === 0 ? {} : { expires_at: Date.now() + days * DAY_MS },
      });
      setLink(made.link);
      links.again();
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <dialog ref={dialog} className="sheet" aria-labelledby={id} onClose={close}>
      <div className="flex flex-col gap-3">
        <h2 id={id} className="text-[15px] font-semibold">
          {texts.share}
        </h2>
        <p className="text-[13px] text-muted">{texts.how}</p>
        <div className="flex flex-wrap items-center gap-2">
          <label className="flex min-w-0 flex-1 items-center gap-2 text-[13px]">
            <span className="whitespace-nowrap text-muted">{texts.expiry}</span>
            <select
              value={term}
              onChange={(event) => setTerm(event.currentTarget.value as Term)}
              className="field"
            >
              {(Object.keys(TERMS) as Term[]).map((term) => (
                <option key={term} value={term}>
                  {texts[term]}
                </option>
              ))}
            </select>
          </label>
          <button type="button" className="button primary" onClick={() => void create()}>
            {texts.create}
          </button>
        </div>
        {link !== undefined && (
          <div>
            <div className="flex items-center gap-1">
              <input
                readOnly
                value={link}
                aria-label={texts.link}
                className="field font-mono"
                onFocus={(event) => event.currentTarget.select()}
              />
              <CopyButton text={() => link} />
            </div>
            <p role="status" className="mt-1 text-[12.5px] text-muted">
              {texts.once}
            </p>
          </div>
        )}
        {failure !== undefined && (
          <p role="alert" className="text-[13px] text-error">
            {failed(failure, words)}
          </p>
        )}
        <section aria-label={texts.links}>
          <h3 className="label">{texts.links}</h3>
          <div className="-mx-3.5 max-h-60 overflow-auto">
            <ShareLinks links={links} none={texts.noLinks} isOfOne />
          </div>
        </section>
        <div className="flex justify-end">
          <button type="button" className="button" onClick={() => dialog.current?.close()}>
            {words.close}
          </button>
        </div>
      </div>
    </dialog>
  );
}
