import { type FormEvent, Fragment, useEffect, useState } from "react";
import type { Session } from "./session.ts";
import { useSignInWords } from "./words.ts";

/** Sign-in page of a browser without a key. */
export default function SignIn({
  session,
  refused,
}: {
  session: Session;
  refused: "link" | "key" | undefined;
}) {
  const words = useSignInWords();
  const [key, setKey] = useState("");
  const [provider, setProvider] = useState<{ name: string; url: string }>();
  useEffect(() => void session.provider().then(setProvider), [session]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void session.use(key.trim());
  };
  return (
    <main className="grid h-dvh place-items-center overflow-auto p-6">
      <form
        onSubmit={submit}
        className="w-full max-w-105 rounded-card border border-line bg-surface p-6 shadow-card"
      >
        <img src="/icon.svg" alt="" className="mb-4 size-9" />
        <h1 className="text-lg font-semibold">{words.signInTitle}</h1>
        <ul className="mt-2 mb-4 grid list-disc gap-1.5 pl-4.5 text-[13.5px] text-muted">
          {words.waysIn.map((way) => (
            <li key={way}>
              <Commands text={way} />
            </li>
          ))}
        </ul>
        {refused && (
          <p role="alert" className="mb-3 rounded-control bg-error-soft px-3 py-2 text-[13px] text-error">
            {refused === "link" ? words.linkRefused : words.keyRefused}
          </p>
        )}
        {provider && (
          <a href={provider.url} className="button primary mb-4">
            {words.signInWith(provider.name)}
          </a>
        )}
        <label className="block text-[13px] font-semibold" htmlFor="key">
          {words.key}
        </label>
        <input
          id="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          placeholder="tl_…"
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
          className="mt-1 w-full rounded-control border border-line-strong bg-bg px-3 py-1.5 font-mono text-[13px]"
        />
        <button type="submit" disabled={key.trim() === ""} className="button primary mt-4">
          {words.signIn}
        </button>
      </form>
    </main>
  );
}

/** A sentence with commands in back-ticks. */
function Commands({ text }: { text: string }) {
  return text
    .split("`")
    .map((part, at) => (
      <Fragment key={at}>
        {at % 2 === 0 ? (
          part
        ) : (
          <code className="rounded bg-sunken px-1 py-0.5 [overflow-wrap:anywhere] text-text">{part}</code>
        )}
      </Fragment>
    ));
}
