// A conversation as one self-contained HTML file: no script, no other file, no network.
//
// The page's components render it into a detached element until everything that loads later (highlighted code, formulas, pictures) is
// there, and then it is serialized. `react-dom/server` would render none of these, since they
// come with effects.

import type { BranchMessage, ConversationInfo, Throughline, WaterfallInfo } from "@throughline/client";
import { createRoot } from "react-dom/client";
import { language } from "../preferences.ts";
import { ClientProvider } from "../session/context.tsx";
import { partsOf, sumOf } from "../shared/charts/parts.ts";
import { Waterfall } from "../shared/charts/waterfall.tsx";
import { duration } from "../shared/format.ts";
import { moment } from "../shared/paged-rows.tsx";
import { styleSheet } from "./model/styles.ts";
import { ReadOnlyThread, ReadOnlyTurn } from "./read-only.tsx";
import { type SharedWords, useSharedWords } from "./words.ts";

/** Maximum number of exported messages, the last ones. */
export const EXPORTED_MESSAGES_MAX = 1_000;
const PART = 200;
/** The document is complete after this time without a change. */
const QUIET_MS = 500;
/** Content that takes longer is left out. */
const DRAWING_MS_MAX = 30_000;
/** Content security policy of the file: nothing in it may load or run. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; font-src data:; base-uri 'none'; form-action 'none'";

interface Turn {
  message: BranchMessage["message"];
  waterfall: WaterfallInfo | undefined;
}

/** The HTML file of a conversation. */
export async function documentOf(
  client: Throughline,
  conversation: Pick<ConversationInfo, "id" | "title">,
): Promise<string> {
  const { turns, isCut } = await turnsOf(client, conversation.id);
  const element = document.createElement("div");
  const root = createRoot(element);
  try {
    root.render(
      <ClientProvider value={client}>
        <Exported title={conversation.title} turns={turns} isCut={isCut} />
      </ClientProvider>,
    );
    await settled(element);
    return written(conversation.title, await standalone(element));
  } finally {
    root.unmount();
  }
}

async function turnsOf(client: Throughline, id: string): Promise<{ turns: Turn[]; isCut: boolean }> {
  let messages: BranchMessage[] = [];
  let before: string | undefined;
  do {
    const part = await client.call("GET /v1/conversations/{conversation_id}/messages", {
      path: { conversation_id: id },
      query: { limit: PART, ...(before === undefined ? {} : { before }) },
    });
    messages = [...part.messages, ...messages];
    before = part.before ?? undefined;
  } while (before !== undefined && messages.length < EXPORTED_MESSAGES_MAX);
  const turns: Turn[] = [];
  for (const { turn_id, message } of messages) {
    const path = { turn_id };
    // A turn without events is shown without its timeline.
    const waterfall = await client.call("GET /v1/turns/{turn_id}/waterfall", { path }).catch(() => undefined);
    turns.push({ message, waterfall });
  }
  return { turns, isCut: before !== undefined };
}

function Exported({ title, turns, isCut }: { title: string; turns: readonly Turn[]; isCut: boolean }) {
  const texts = useSharedWords();
  return (
    <main className="mx-auto max-w-190 px-4 py-6.5">
      <header className="mb-7 border-b border-line pb-4">
        <h1 className="text-[20px] font-semibold" dir="auto">
          {title || texts.untitled}
        </h1>
        <p className="mt-1 text-[12.5px] text-muted">{texts.exportedOn(moment(Date.now()))}</p>
        {isCut && <p className="mt-1 text-[12.5px] text-muted">{texts.cut(turns.length)}</p>}
      </header>
      <ReadOnlyThread>
        <ol>
          {turns.map(({ message, waterfall }) => (
            <ReadOnlyTurn key={message.turn_id} message={message}>
              {waterfall && <Timeline texts={texts} waterfall={waterfall} message={message} />}
            </ReadOnlyTurn>
          ))}
        </ol>
      </ReadOnlyThread>
    </main>
  );
}

/** Time of the turn by kind. */
function Timeline({
  texts,
  waterfall,
  message,
}: {
  texts: SharedWords;
  waterfall: WaterfallInfo;
  message: BranchMessage["message"];
}) {
  const nameOf = (toolId: string): string | undefined => {
    const call = message.blocks.find((block) => block.kind === "tool_call" && block.tool_id === toolId);
    return call?.kind === "tool_call" ? call.tool_name : undefined;
  };
  return (
    <details className="mt-2 pl-7.5 text-[12.5px]">
      <summary className="text-muted">{texts.timeline(duration(sumOf(partsOf(waterfall.segments))))}</summary>
      <Waterfall waterfall={waterfall} nameOf={nameOf} />
    </details>
  );
}

/** Waits until the element stops changing. */
async function settled(element: Element): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      observer.disconnect();
      clearTimeout(quiet);
      clearTimeout(latest);
      resolve();
    };
    let quiet = setTimeout(done, QUIET_MS);
    const latest = setTimeout(done, DRAWING_MS_MAX);
    const observer = new MutationObserver(() => {
      clearTimeout(quiet);
      quiet = setTimeout(done, QUIET_MS);
    });
    observer.observe(element, { subtree: true, childList: true, characterData: true, attributes: true });
  });
}

/** Elements without a use or a text if there is no script. */
const DEAD = "input, select, textarea, script, .segments, [role=tablist]";

/** A copy with all resources embedded. */
async function standalone(element: Element): Promise<Element> {
  const copy = element.cloneNode(true) as Element;
  for (const dead of copy.querySelectorAll(DEAD)) dead.remove();
  for (const button of copy.querySelectorAll("button")) {
    // A button that folds a value has the value's name; one with an icon only has no text to keep.
    const label = document.createElement("span");
    label.append(...button.childNodes);
    if (label.textContent?.trim()) button.replaceWith(label);
    else button.remove();
  }
  for (const attribute of ["src", "href"]) {
    for (const one of copy.querySelectorAll(`[${attribute}^="blob:"]`)) {
      one.setAttribute(attribute, await dataUrl(one.getAttribute(attribute) ?? ""));
    }
  }
  // Links within the page lead nowhere from a file.
  for (const link of copy.querySelectorAll('a[href^="/"]')) link.removeAttribute("href");
  return copy;
}

async function dataUrl(url: string): Promise<string> {
  const content = await (await fetch(url)).blob();
  return await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(content);
  });
}

/** The HTML source. It is built from nodes: no text in it is parsed as markup. */
function written(title: string, body: Element): string {
  const whole = document.implementation.createHTMLDocument(title || "Throughline");
  whole.documentElement.lang = language.get();
  const meta = (attributes: Readonly<Record<string, string>>): Element => {
    const element = whole.createElement("meta");
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  whole.head.prepend(
    meta({ charset: "utf-8" }),
    meta({ "http-equiv": "Content-Security-Policy", content: POLICY }),
    meta({ name: "viewport", content: "width=device-width, initial-scale=1" }),
    meta({ name: "generator", content: "Throughline" }),
  );
  whole.body.append(...body.childNodes);
  // Styles are added last and as text: this page's own policy would refuse a style element. Nothing before them ends the head.
  const style = `<style>${styleSheet(document).replaceAll("</", "<\\/")}</style>`;
  const [head = "", ...rest] = whole.documentElement.outerHTML.split("</head>");
  return `<!doctype html>\n${head}${style}</head>${rest.join("</head>")}\n`;
}
