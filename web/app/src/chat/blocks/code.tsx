import { useEffect, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { CopyButton } from "../../ui/copy.tsx";
import type { Piece } from "./highlight.ts";

/** A longer one is left as it is: colours help nobody there. */
const COLOURED_CHARS_MAX = 64_000;

export function Code({ text, language, isClosed }: { text: string; language: string; isClosed: boolean }) {
  const words = useWords();
  const name = language.split(/\s/)[0] ?? "";
  const pieces = usePieces(text, name, isClosed);
  return (
    <div className="code">
      <div className="code-head">
        <span>{name}</span>
        <CopyButton text={() => text} label={words.copy} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <pre tabIndex={0}>
        <code>
          {pieces?.map(({ text, colour }, at) =>
            colour === undefined ? (
              text
            ) : (
              <span key={`${at}`} data-token={colour}>
                {text}
              </span>
            ),
          ) ?? text}
        </code>
      </pre>
    </div>
  );
}

/** The code in its colours, once it is closed and nothing else is to be done. R: U6 */
function usePieces(text: string, language: string, isClosed: boolean): readonly Piece[] | undefined {
  const [read, setRead] = useState<{ text: string; pieces: readonly Piece[] }>();
  useEffect(() => {
    if (!isClosed || text.length > COLOURED_CHARS_MAX || language === "") return undefined;
    let isWanted = true;
    const colour = async (): Promise<void> => {
      const { piecesOf } = await import("./highlight.ts");
      const pieces = piecesOf(text, language);
      if (isWanted) setRead({ text, pieces });
    };
    // Without colours it is the same code.
    const cancel = whenIdle(() => void colour().catch(() => undefined));
    return () => {
      isWanted = false;
      cancel();
    };
  }, [text, language, isClosed]);
  return read?.text === text ? read.pieces : undefined;
}

/** Not every browser tells when it is idle. */
function whenIdle(act: () => void): () => void {
  if (typeof requestIdleCallback === "function") {
    const id = requestIdleCallback(act);
    return () => cancelIdleCallback(id);
  }
  const timer = setTimeout(act, 50);
  return () => clearTimeout(timer);
}
