import type { ParsedReply } from "@throughline/client";
import { Fragment } from "react";
import { useWords } from "../i18n/use.ts";
import { type Passage, passagesOf } from "./model/passages.ts";
import { useTesterWords } from "./words.ts";

interface PassagesProps {
  text: string;
  /** The part of the text that has arrived. */
  arrived: string;
  parsed: ParsedReply | undefined;
  /** The text is played back, and read only meanwhile. */
  isPlayed: boolean;
  change(text: string): void;
}

/** The text with its calls marked: editable, with the marks under the letters, or as it arrives. */
export function Passages({ text, arrived, parsed, isPlayed, change }: PassagesProps) {
  const words = useTesterWords();
  const passages: readonly Passage[] = parsed
    ? passagesOf(arrived, parsed, arrived.length === text.length)
    : [{ kind: "text", text: arrived }];
  const marked = passages.map((passage, at) => <Marked key={at} passage={passage} />);
  if (isPlayed) {
    return (
      <section
        aria-label={words.arriving}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        tabIndex={0}
        className="reply"
      >
        <div className="reply-text">
          {marked}
          {arrived.length < text.length && <span aria-hidden className="caret" />}
          <span className="text-muted">{text.slice(arrived.length)}</span>
        </div>
      </section>
    );
  }
  return (
    <div className="reply">
      <div aria-hidden className="reply-text reply-marks">
        {marked}
        {/* A last empty line needs a height. */}
        {"\n"}
      </div>
      <textarea
        aria-label={words.reply}
        placeholder={words.replyPlaceholder}
        value={text}
        spellCheck={false}
        onChange={(event) => change(event.currentTarget.value)}
        className="reply-text reply-field"
      />
    </div>
  );
}

function Marked({ passage }: { passage: Passage }) {
  const words = useWords();
  switch (passage.kind) {
    case "text":
      return <Fragment>{passage.text}</Fragment>;
    case "call":
      return (
        <mark className="call-mark" data-fate={passage.outlook} title={String(passage.number)}>
          {passage.text}
        </mark>
      );
    case "warning":
      return (
        <mark
          className="warning-mark"
          title={words.serverText(passage.warning.message, passage.warning.kind)}
        >
          {passage.text}
        </mark>
      );
  }
}
