// The page of a peer: follows the stream with the same client, and passes blocks to the view once per frame.

import { Throughline, type ViewerEvent } from "@throughline/client";
// Set by the build.
import { show } from "./view";

export type Block =
  | { kind: "text"; id: string; text: string }
  | { kind: "call"; id: string; name: string; args: string; output?: string };

const params = new URLSearchParams(location.hash.slice(1));
const client = new Throughline({ baseUrl: params.get("server") ?? "", key: params.get("key") ?? "" });
const scroller = document.getElementById("scroller") as HTMLElement;
const root = document.getElementById("root") as HTMLElement;
const field = document.querySelector("textarea") as HTMLTextAreaElement;

field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  const text = field.value;
  field.value = "";
  void answer(text);
});

async function answer(text: string): Promise<void> {
  let blocks: readonly Block[] = [];
  let isAsked = false;
  const set = show(root);
  const flush = (isRunning: boolean): void => set(blocks, isRunning);
  flush(true);
  const { events } = await client.start({ input: [{ type: "text", text }] });
  for await (const event of events) {
    const next = reduced(blocks, event);
    if (next === blocks) continue;
    blocks = next;
    if (isAsked) continue;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      flush(true);
      scroller.scrollTop = scroller.scrollHeight;
    });
  }
  requestAnimationFrame(() => flush(false));
}

function reduced(blocks: readonly Block[], event: ViewerEvent): readonly Block[] {
  const changed = (at: number, change: (block: Block) => Block): readonly Block[] =>
    blocks.map((block, index) => (index === at ? change(block) : block));
  const ofCall = (id: string): number =>
    blocks.findIndex((block) => block.kind === "call" && block.id === id);
  switch (event.type) {
    case "block_start":
      return event.kind === "text" ? [...blocks, { kind: "text", id: `t${event.block}`, text: "" }] : blocks;
    case "content_delta":
      return changed(event.block ?? 0, (block) =>
        block.kind === "text" ? { ...block, text: block.text + event.text } : block,
      );
    case "tool_use":
      return [...blocks, { kind: "call", id: event.tool_id, name: event.tool_name, args: "" }];
    case "tool_input_delta":
      return changed(ofCall(event.tool_id), (block) =>
        block.kind === "call" ? { ...block, args: block.args + event.delta } : block,
      );
    case "tool_result":
      return changed(ofCall(event.tool_id), (block) =>
        block.kind === "call" ? { ...block, output: event.output ?? "" } : block,
      );
    default:
      return blocks;
  }
}
