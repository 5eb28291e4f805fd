import { useEffect, useState } from "react";
import { useWords } from "../i18n/use.ts";
import type { Missed } from "./later.tsx";
import { isOutdated } from "./release.ts";

interface PartFailedProps {
  missed: Missed;
  isTrying: boolean;
  failures: number;
  again(): void;
  close: (() => void) | undefined;
}

/** A part of the page could not be fetched: the server is away, or it has a newer page than this one. */
export function PartFailed({ missed, isTrying, failures, again, close }: PartFailedProps) {
  const words = useWords();
  const [isOld, setOld] = useState(false);
  useEffect(() => {
    let isWanted = true;
    void isOutdated().then((isOld) => isWanted && failures > 0 && setOld(isOld));
    return () => {
      isWanted = false;
    };
  }, [failures]);
  const text = isOld ? words.pageOutdated : words.partFailed;
  return (
    <div role="status" className="part-failed" data-missed={missed}>
      {missed === "view" ? <h1>{text}</h1> : <p>{text}</p>}
      {!isOld && (
        <button type="button" className="button" disabled={isTrying} onClick={again}>
          {words.tryAgain}
        </button>
      )}
      {/* Some browsers do not fetch again what has failed once. */}
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
