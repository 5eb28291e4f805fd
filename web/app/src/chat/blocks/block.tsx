import type { Block } from "@throughline/client";
import { useBlock } from "@throughline/client/react";
import { memo } from "react";
import { useWords } from "../../i18n/use.ts";
import { MediaView } from "../../ui/media.tsx";
import { Card } from "../card/card.tsx";
import { useEntry } from "../context.tsx";
import { UserParts } from "../thread/user.tsx";
import { ErrorBlock } from "./error.tsx";
import { TextBlock } from "./text.tsx";
import { Thinking } from "./thinking.tsx";

/** One block of a message. It alone is drawn anew when it changes. */
export const BlockView = memo(function BlockView({ at }: { at: number }) {
  const { store } = useEntry();
  const block = useBlock(store, at);
  if (block === undefined || isNothing(block)) return null;
  return (
    <div className="part" data-kind={block.kind} tabIndex={-1}>
      <Content block={block} />
    </div>
  );
});

/** A call that was unfolded from a group. */
export const CallBlockView = BlockView;

/** A text without words draws no empty line. */
function isNothing(block: Readonly<Block>): boolean {
  return block.kind === "unrecognised" || (block.kind === "text" && block.text.trim() === "");
}

function Content({ block }: { block: Readonly<Block> }) {
  const words = useWords();
  switch (block.kind) {
    case "text":
      return <TextBlock text={block.text} isOpen={block.state === "open"} code={block.code} />;
    case "thinking":
      return <Thinking text={block.text} isOpen={block.state === "open"} />;
    case "tool_call":
      return <Card call={block} />;
    case "image":
      return <MediaView media={block} />;
    case "audio":
      return <p className="text-muted italic">{block.transcript || words.sound}</p>;
    case "notice":
      return (
        <p className="rounded-control border border-line bg-sunken px-3 py-2 text-[13px] whitespace-pre-wrap text-muted">
          {words.serverText(block.text, block.code)}
        </p>
      );
    case "error":
      return <ErrorBlock fault={block} />;
    case "user_message":
      return (
        <>
          <p className="mb-1 text-right text-[12px] text-muted">{words.sentWhileRunning}</p>
          <UserParts parts={block.input} />
        </>
      );
    case "unrecognised":
      return null;
  }
}
