import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { theme } from "../../preferences.ts";

export type FrameKind = "diagram" | "html" | "svg";

/** Height of a frame in CSS pixels. */
const HEIGHT_MIN = 48;
const HEIGHT_MAX = 640;
/** A diagram that takes longer is shown as its source. */
const DIAGRAM_MS_MAX = 20_000;

export interface FrameProps {
  kind: FrameKind;
  source: string;
  onFail: (message: string) => void;
}

/**
 * Content from a model in a document that cannot reach this page, its storage or a network: an origin of its own and a policy without
 * sources. It receives the source as a message and sends its size.
 */
export default function Frame({ kind, source, onFail }: FrameProps) {
  const words = useWords();
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState<number>();
  const shownTheme = useSyncExternalStore(onTheme, () => document.documentElement.dataset.theme ?? "light");
  const failed = useRef(onFail);
  failed.current = onFail;
  useEffect(() => {
    let isSent = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onMessage = ({ source: sender, data }: MessageEvent): void => {
      const target = frame.current?.contentWindow;
      // Its origin is opaque, so messages are matched by window; their content is only ever read as a number or a sentence.
      if (!target || sender !== target || typeof data !== "object" || data === null) return;
      if (data.kind === "ready" && !isSent) {
        isSent = true;
        target.postMessage({ kind, source, theme: shownTheme }, "*");
        if (kind === "diagram") timer = setTimeout(() => failed.current(words.diagramSlow), DIAGRAM_MS_MAX);
      } else if (data.kind === "size" && Number.isFinite(data.height)) {
        clearTimeout(timer);
        setHeight(Math.min(Math.max(Math.ceil(data.height), HEIGHT_MIN), HEIGHT_MAX));
      } else if (data.kind === "error" && typeof data.message === "string") {
        clearTimeout(timer);
        failed.current(data.message.slice(0, 300));
      }
    };
    addEventListener("message", onMessage);
    return () => {
      clearTimeout(timer);
      removeEventListener("message", onMessage);
    };
  }, [kind, source, shownTheme, words]);
  const isDiagram = kind === "diagram";
  return (
    <iframe
      // Diagrams are redrawn when the theme changes.
      key={isDiagram ? shownTheme : "document"}
      ref={frame}
      className="frame"
      data-kind={kind}
      title={isDiagram ? words.diagram : words.preview}
      src={`/frames/${isDiagram ? "diagram" : "preview"}.html`}
      sandbox="allow-scripts"
      referrerPolicy="no-referrer"
      loading="lazy"
      style={{ height: height ?? (isDiagram ? 160 : 240) }}
    />
  );
}

function onTheme(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const stop = theme.subscribe(listener);
  return () => {
    observer.disconnect();
    stop();
  };
}
