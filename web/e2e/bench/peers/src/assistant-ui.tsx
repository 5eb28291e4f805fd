// assistant-ui: its runtime for external messages, with its own Markdown component.

import {
  AssistantRuntimeProvider,
  MessagePrimitive,
  type ThreadMessageLike,
  ThreadPrimitive,
  useExternalStoreRuntime,
} from "@assistant-ui/react";
import { MarkdownTextPrimitive } from "@assistant-ui/react-markdown";
import { useMemo } from "react";
import { createRoot } from "react-dom/client";
import gfm from "remark-gfm";
import { Card } from "./card.tsx";
import type { Block } from "./main.ts";

const plugins = [gfm];
const Text = () => <MarkdownTextPrimitive remarkPlugins={plugins} smooth={false} />;
const Tool = ({ toolName, argsText, result }: { toolName: string; argsText?: string; result?: unknown }) => (
  <Card name={toolName} args={argsText ?? ""} output={result === undefined ? undefined : String(result)} />
);
const parts = { Text, tools: { Fallback: Tool } };
const Message = () => (
  <MessagePrimitive.Root>
    <MessagePrimitive.Parts components={parts} />
  </MessagePrimitive.Root>
);
const components = { UserMessage: Message, AssistantMessage: Message };
const same = (message: ThreadMessageLike): ThreadMessageLike => message;

function View({ blocks, isRunning }: { blocks: readonly Block[]; isRunning: boolean }) {
  const messages = useMemo<ThreadMessageLike[]>(
    () => [
      {
        id: "answer",
        role: "assistant",
        status: isRunning ? { type: "running" } : { type: "complete", reason: "stop" },
        content: blocks.map((block) =>
          block.kind === "text"
            ? { type: "text" as const, text: block.text }
            : {
                type: "tool-call" as const,
                toolCallId: block.id,
                toolName: block.name,
                argsText: block.args,
                result: block.output,
              },
        ),
      },
    ],
    [blocks, isRunning],
  );
  const runtime = useExternalStoreRuntime({
    messages,
    isRunning,
    convertMessage: same,
    onNew: async () => {},
  });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <article aria-busy={isRunning}>
        <ThreadPrimitive.Root>
          <ThreadPrimitive.Messages components={components} />
        </ThreadPrimitive.Root>
      </article>
    </AssistantRuntimeProvider>
  );
}

export function show(root: HTMLElement) {
  const made = createRoot(root);
  return (blocks: readonly Block[], isRunning: boolean): void =>
    made.render(<View blocks={blocks} isRunning={isRunning} />);
}
