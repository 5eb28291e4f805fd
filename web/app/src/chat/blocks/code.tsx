import { useEffect, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { later } from "../../ui/later.tsx";
import type { FrameKind } from "./frame.tsx";
import type { Piece } from "./highlight.ts";

const Frame = later(() => import("./frame.tsx"));

/** Languages that can be rendered in a frame. */
const FRAMES: Readonly<Record<string, FrameKind>> = { mermaid: "diagram", html: "html", svg: "svg" };
/** Longer code is never rendered in a frame. */
const FRAME_CHARS_MAX = 100_000;

/** Longer code is not highlighted. */
const COLORED_CHARS_MAX = 64_000;

export function Code({ text, language, isClosed }: { text: string; language: string; isClosed: boolean }) {
  const words = useWords();
  const name = language.split(/\s/)[0] ?? "";
  const kind = isClosed && text.length <= FRAME_CHARS_MAX ? FRAMES[name.toLowerCase()] : undefined;
  const isDiagram = kind === "diagram";
  const [choice, setChoice] = useState<boolean>();
  const [failure, setFailure] = useState<string>();
  // A diagram is rendered at once; a document runs scripts, so it needs a click.
  const isFramed = kind !== undefined && (choice ?? isDiagram) && failure === undefined;
  return (
    <div className="code" dir="ltr">
      <div className="code-head">
        <span>{name}</span>
        {kind !== undefined && (
          <button
            type="button"
            className="code-switch"
            aria-pressed={isFramed}
            onClick={() => {
              setFailure(undefined);
              setChoice(!isFramed);
            }}
          >
            {isDiagram ? words.diagram : words.preview}
          </button>
        )}
        <CopyButton text={() => text} label={words.copy} />
      </div>
      {failure !== undefined && <p className="code-note">{words.diagramFailed(failure)}</p>}
      {isFramed && <Frame kind={kind} source={text} onFail={setFailure} />}
      {!(isDiagram && isFramed) && <Source text={text} name={name} isClosed={isClosed} />}
    </div>
  );
}

function Source({ text, name, isClosed }: { text: string; name: string; isClosed: boolean }) {
  const pieces = usePieces(text, name, isClosed);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <pre tabIndex={0}>
      <code>
        {pieces?.map(({ text, color }, at) =>
          color === undefined ? (
            text
          ) : (
            <span key={`${at}`} data-token={color}>
              {text}
            </span>
          ),
        ) ?? text}
      </code>
    </pre>
  );
}

/** Highlights the code once it is closed and the browser is idle. */
function usePieces(text: string, language: string, isClosed: boolean): readonly Piece[] | undefined {
  const [read, setRead] = useState<{ text: string; pieces: readonly Piece[] }>();
  useEffect(() => {
    if (!isClosed || text.length > COLORED_CHARS_MAX || language === "") return undefined;
    let isWanted = true;
    const color = async (): Promise<void> => {
      const { piecesOf } = await import("./highlight.ts");
      const pieces = piecesOf(text, language);
      if (isWanted) setRead({ text, pieces });
    };
    // Without highlighting the code is the same.
    const cancel = whenIdle(() => void color().catch(() => undefined));
    return () => {
      isWanted = false;
      cancel();
    };
  }, [text, language, isClosed]);
  return read?.text === text ? read.pieces : undefined;
}

/** Runs when the browser is idle; not every browser tells. */
function whenIdle(act: () => void): () => void {
  if (typeof requestIdleCallback === "function") {
    const id = requestIdleCallback(act);
    return () => cancelIdleCallback(id);
  }
  const timer = setTimeout(act, 50);
  return () => clearTimeout(timer);
}
