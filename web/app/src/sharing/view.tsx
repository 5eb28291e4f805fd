import { ApiError, type BranchMessage } from "@throughline/client";
import { useEffect, useMemo, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { ClientProvider } from "../session/context.tsx";
import { moment } from "../shared/paged-rows.tsx";
import { linkIn, SharedClient, type SharedLink } from "./model/client.ts";
import { ReadOnlyThread, ReadOnlyTurn } from "./read-only.tsx";
import { type SharedWords, useSharedWords } from "./words.ts";

const PART = 50;

/** A shared conversation: read only, and without a key. */
export default function SharedView() {
  const texts = useSharedWords();
  const [link] = useState(() => linkIn(location.pathname, location.hash));
  return (
    <main className="h-dvh overflow-auto bg-bg px-4 min-[720px]:px-6">
      <div className="mx-auto max-w-190 py-6.5">
        {link === undefined ? (
          <Unavailable texts={texts} why={texts.unavailableHint} title={texts.unavailable} />
        ) : (
          <Shown link={link} />
        )}
      </div>
    </main>
  );
}

interface Loaded {
  title: string;
  sharedAt: number;
  expiresAt: number | undefined;
  messages: readonly BranchMessage[];
  before: string | undefined;
}

function Shown({ link }: { link: SharedLink }) {
  const words = useWords();
  const texts = useSharedWords();
  const client = useMemo(() => new SharedClient(link), [link]);
  const [loaded, setLoaded] = useState<Loaded>();
  const [failure, setFailure] = useState<unknown>();
  useEffect(() => {
    const leave = new AbortController();
    client
      .call("POST /v1/shared", { body: { ...link, limit: PART }, signal: leave.signal })
      .then(({ title, shared_at, expires_at, messages, before }) => {
        document.title = title || texts.shared;
        setLoaded({
          title,
          sharedAt: shared_at,
          expiresAt: expires_at ?? undefined,
          messages,
          before: before ?? undefined,
        });
      })
      .catch((error: unknown) => leave.signal.aborted || setFailure(error));
    return () => leave.abort();
  }, [client, link, texts]);
  const older = async (): Promise<void> => {
    if (loaded?.before === undefined) return;
    const body = { ...link, limit: PART, before: loaded.before };
    const part = await client.call("POST /v1/shared", { body });
    const messages = [...part.messages, ...loaded.messages];
    setLoaded({ ...loaded, messages, before: part.before ?? undefined });
  };
  if (loaded === undefined) {
    return failure === undefined ? (
      <p role="status" className="text-muted">
        {words.loading}
      </p>
    ) : (
      <Failed texts={texts} failure={failure} />
    );
  }
  const { title, sharedAt, expiresAt, messages, before } = loaded;
  const facts = [texts.shared, texts.readOnly, texts.sharedOn(moment(sharedAt))];
  if (expiresAt !== undefined) facts.push(texts.expires(moment(expiresAt)));
  return (
    <ClientProvider value={client}>
      <header className="mb-7 border-b border-line pb-4">
        <h1 className="text-[20px] font-semibold" dir="auto">
          {title || texts.untitled}
        </h1>
        <p className="mt-1 text-[12.5px] text-muted">{facts.join(" · ")}</p>
      </header>
      {before !== undefined && (
        <button
          type="button"
          className="button quiet mx-auto mb-4 flex w-fit"
          onClick={() => void older().catch(setFailure)}
        >
          {words.olderTurns}
        </button>
      )}
      {failure !== undefined && <Failed texts={texts} failure={failure} />}
      <ReadOnlyThread>
        <ol aria-label={words.chat}>
          {messages.map(({ turn_id, message }) => (
            <ReadOnlyTurn key={turn_id} message={message} />
          ))}
        </ol>
      </ReadOnlyThread>
    </ClientProvider>
  );
}

function Failed({ texts, failure }: { texts: SharedWords; failure: unknown }) {
  const status = failure instanceof ApiError ? failure.status : undefined;
  if (status === 410)
    return <Unavailable texts={texts} title={texts.unavailable} why={texts.unavailableHint} />;
  return <Unavailable texts={texts} title={texts.shared} why={status === 429 ? texts.busy : texts.failed} />;
}

function Unavailable({ title, why }: { texts: SharedWords; title: string; why: string }) {
  return (
    <div role="alert" className="py-10 text-center">
      <h1 className="text-[17px] font-semibold">{title}</h1>
      <p className="mt-2 text-muted">{why}</p>
    </div>
  );
}
