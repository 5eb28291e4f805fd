// streamdown: one instance per text block, as its documentation says.

import { memo } from "react";
import { createRoot } from "react-dom/client";
import { Streamdown } from "streamdown";
import { Card } from "./card.tsx";
import type { Block } from "./main.ts";

const Text = memo(({ text }: { text: string }) => <Streamdown>{text}</Streamdown>);

export function show(root: HTMLElement) {
  const made = createRoot(root);
  return (blocks: readonly Block[], isRunning: boolean): void =>
    made.render(
      <article aria-busy={isRunning}>
        {blocks.map((block) =>
          block.kind === "text" ? (
            <Text key={block.id} text={block.text} />
          ) : (
            <Card key={block.id} name={block.name} args={block.args} output={block.output} />
          ),
        )}
      </article>,
    );
}
