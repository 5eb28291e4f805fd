import { useEffect, useState } from "react";
import { useWords } from "../i18n/use.ts";
import type { Missed } from "./later.tsx";
import { type ServedPage, servedPage } from "./release.ts";

interface PartFailedProps {
  missed: Missed;
  isTrying: boolean;
  failures: number;
  /** Loads the part again; true: it is loaded. */
  again(): Promise<boolean>;
  close: (() => void) | undefined;
}

/** Error for a part of the page that failed to load: the server is away, or has a newer page. */
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
  // A browser may cache a failed module (Chromium 148 does): only a reload requests it again.
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
