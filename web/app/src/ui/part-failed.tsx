import { useEffect, useState } from "react";
import { useWords } from "../i18n/use.ts";
import type { Missed } from "./later.tsx";
import { type ServedPage, servedPage } from "./release.ts";

interface PartFailedProps {
  missed: Missed;
  isTrying: boolean;
  failures: number;
  /** Whether it has come. */
  again(): Promise<boolean>;
  close: (() => void) | undefined;
}

/** A part of the page could not be fetched: the server is away, or it has a newer page than this one. */
export function PartFailed({ missed, isTrying, failures, again, close }: PartFailedProps) {
  const words = useWords();
  const [served, setServed] = useState<ServedPage>("away");
  const isOld = served === "newer";
  useEffect(() => {
    let isWanted = true;
    void servedPage().then((served) => isWanted && failures > 0 && setServed(served));
    return () => {
      isWanted = false;
    };
  }, [failures]);
  // A browser may keep a module that could not be fetched as failed (Chromium 148 does): only a new page asks for it again.
  const tryAgain = async (): Promise<void> => {
    if (!(await again()) && (await servedPage()) === "this") location.reload();
  };
  const text = isOld ? words.pageOutdated : words.partFailed;
  return (
    <div role="status" className="part-failed" data-missed={missed}>
      {missed === "view" ? <h1>{text}</h1> : <p>{text}</p>}
      {!isOld && (
        <button type="button" className="button" disabled={isTrying} onClick={() => void tryAgain()}>
          {words.tryAgain}
        </button>
      )}
      {(isOld || failures > 1) && (
        <button type="button" className="button" onClick={() => location.reload()}>
          {words.reload}
        </button>
      )}
      {close && (
        <button type="button" className="button quiet" onClick={close}>
          {words.close}
        </button>
      )}
    </div>
  );
}
