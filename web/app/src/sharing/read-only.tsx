import type { Block, CallBlock, Message } from "@throughline/client";
import { TurnStore } from "@throughline/client";
import { type ReactNode, useMemo } from "react";
import { Avatar } from "../avatar/model.ts";
import { TextBlock } from "../chat/blocks/text.tsx";
import { Arguments, CallError } from "../chat/card/body.tsx";
import { Summary } from "../chat/card/summary.tsx";
import { ChatProvider, EntryProvider } from "../chat/context.tsx";
import { ConversationStore } from "../chat/model/conversation.ts";
import { OpenApprovals } from "../chat/model/open-approvals.ts";
import { UserParts } from "../chat/thread/user.tsx";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { ToolIcon } from "../shared/call-card/icon.tsx";
import { Output } from "../shared/call-card/output.tsx";
import { callTone, nameOf, statusWord } from "../shared/call-card/tone.ts";
import { duration } from "../shared/format.ts";
import { MediaView } from "../ui/media.tsx";
import { useSharedWords } from "./words.ts";

/** Messages without actions: no call is run again, no approval is answered. Cards fold without a script. */
export function ReadOnlyThread({ children }: { children: ReactNode }) {
  const client = useClient();
  const chat = useMemo(() => {
    const [conversation, openApprovals] = [new ConversationStore(client), new OpenApprovals()];
    return { conversation, openApprovals, avatar: new Avatar(client), hold: () => undefined };
  }, [client]);
  return <ChatProvider value={chat}>{children}</ChatProvider>;
}

interface TurnProps {
  message: Message;
  /** Content below the answer. */
  children?: ReactNode;
}

/** The user's message and the answer, read only. */
export function ReadOnlyTurn({ message, children }: TurnProps) {
  const words = useWords();
  const entry = useMemo(
    () => ({ key: message.turn_id, turnId: undefined, store: new TurnStore(message), draft: undefined }),
    [message],
  );
  const isEmpty = message.blocks.length === 0;
  return (
    <EntryProvider value={entry}>
      <li className="mb-8">
        <article aria-label={words.yourMessage} className="mb-4">
          <UserParts parts={message.input} />
        </article>
        <article aria-label={words.assistantMessage}>
          <h2 className="sr-only">{words.assistantMessage}</h2>
          <div className={`thread settled ${isEmpty ? "bare" : ""}`}>
            {message.blocks.map((block, at) => (
              <ReadOnlyBlock key={at} block={block} />
            ))}
          </div>
          {children}
        </article>
      </li>
    </EntryProvider>
  );
}

function ReadOnlyBlock({ block }: { block: Readonly<Block> }) {
  if (block.kind === "unrecognised" || (block.kind === "text" && block.text.trim() === "")) return null;
  return (
    <div className="part" data-kind={block.kind}>
      <Content block={block} />
    </div>
  );
}

function Content({ block }: { block: Readonly<Block> }) {
  const words = useWords();
  const texts = useSharedWords();
  switch (block.kind) {
    case "text":
      return <TextBlock text={block.text} isOpen={false} code={block.code} />;
    case "thinking":
      return block.text === "" ? null : (
        <details className="text-[13.5px] text-muted">
          <summary>{texts.thought}</summary>
          <div className="mt-1 border-l-2 border-line pl-3 whitespace-pre-wrap">{block.text}</div>
        </details>
      );
    case "tool_call":
      return <ReadOnlyCard call={block} />;
    case "image":
      return <MediaView media={block} />;
    case "audio":
      return <p className="text-muted">{block.transcript || texts.transcript}</p>;
    case "notice":
      return (
        <p className="rounded-control border border-line bg-sunken px-3 py-2 text-[13px] whitespace-pre-wrap text-muted">
          {words.serverText(block.text, block.code)}
        </p>
      );
    case "error":
      return (
        <div className="rounded-card border border-error bg-error-soft px-4 py-3 text-[13.5px]">
          <p className="font-semibold whitespace-pre-wrap text-error">
            {words.serverText(block.what, block.code)}
          </p>
          {block.why && <p className="mt-1 whitespace-pre-wrap">{words.serverText(block.why)}</p>}
        </div>
      );
    case "user_message":
      return <UserParts parts={block.input} />;
    default:
      return null;
  }
}

/** A call with its arguments and its outcome, read only. */
function ReadOnlyCard({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const tone = callTone(call);
  const hasOutput = Boolean(call.output) || call.output_value !== undefined || call.status === "success";
  return (
    <>
      <span className="knot" data-look={tone} aria-hidden />
      <details className="card" data-look={tone} data-status={call.status}>
        <summary className="card-head">
          <ToolIcon name={nameOf(call)} source={call.source} />
          <span className="name">{nameOf(call)}</span>
          <Summary call={call} />
          <span className="pill" data-look={tone}>
            {statusWord(call, words)}
          </span>
          {call.duration_ms !== undefined && <span className="time">{duration(call.duration_ms)}</span>}
        </summary>
        <div className="card-body">
          <Arguments call={call} />
          {call.error && <CallError call={call} />}
          {hasOutput && (
            // A truncated output cannot be loaded here, so there is no button for it.
            <Output
              text={call.output ?? ""}
              value={call.output_value}
              size={undefined}
              isLive={false}
              toolId={undefined}
            />
          )}
          {call.output_media?.map((media, at) => (
            <MediaView key={at} media={media} />
          ))}
        </div>
      </details>
    </>
  );
}
