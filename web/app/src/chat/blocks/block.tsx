import type { Block } from "@throughline/client";
import { useBlock } from "@throughline/client/react";
import { memo, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { later } from "../../ui/later.tsx";
import { MediaView } from "../../ui/media.tsx";
import { Card } from "../card/card.tsx";
import { useEntry } from "../context.tsx";
import { UserParts } from "../thread/user.tsx";
import { ErrorBlock } from "./error.tsx";
import { Growth } from "./markdown/growth.ts";
import { TextBlock } from "./text.tsx";
import { Thinking } from "./thinking.tsx";

/** Loaded with the first citation. */
const Citations = later(() => import("./citations.tsx"));
/** Loaded with the first audio block. */
const VoiceBubble = later(() => import("../../voice/bubble.tsx"));

/** One block of a message. It re-renders only when the block changes. */
export const BlockView = memo(function BlockView({ at }: { at: number }) {
  const { store } = useEntry();
  const [growth] = useState(() => new Growth());
  const block = useBlock(store, at, growth.show);
  growth.draws(block);
  if (block === undefined || isNothing(block)) return null;
  return (
    <div className="part" data-kind={block.kind} tabIndex={-1}>
      <Content block={block} at={at} growth={growth} />
    </div>
  );
});

/** A call that was expanded from a group. */
export const CallBlockView = BlockView;

/** An empty text is not rendered. */
function isNothing(block: Readonly<Block>): boolean {
  return block.kind === "unrecognised" || (block.kind === "text" && block.text.trim() === "");
}

function Content({ block, at, growth }: { block: Readonly<Block>; at: number; growth: Growth }) {
  const words = useWords();
  const { opened } = useEntry();
  switch (block.kind) {
    case "text":
      return (
        <>
          <TextBlock text={block.text} isOpen={block.state === "open"} code={block.code} growth={growth} />
          {block.citations && <Citations sources={block.citations} />}
        </>
      );
    case "thinking":
      return <Thinking text={block.text} isOpen={block.state === "open"} at={at} />;
    case "tool_call":
      return <Card call={block} onOpen={() => opened?.add(at)} />;
    case "image":
      return <MediaView media={block} />;
    case "audio":
      return (
        <VoiceBubble
          block={block}
          at={at}
          meanwhile={<p className="voice-bubble text-muted">{block.transcript || words.sound}</p>}
        />
      );
    case "notice":
      return (
        <p
          dir="auto"
          className="rounded-control border border-line bg-sunken px-3 py-2 text-[13px] whitespace-pre-wrap text-muted"
        >
          {words.serverText(block.text, block.code)}
        </p>
      );
    case "error":
      return <ErrorBlock fault={block} />;
    case "user_message":
      return (
        <>
          <p className="mb-1 text-end text-[12px] text-muted">{words.sentWhileRunning}</p>
          <UserParts parts={block.input} />
        </>
      );
    case "unrecognised":
      return null;
  }
}
