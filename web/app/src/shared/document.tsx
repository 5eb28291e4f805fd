// A conversation as one HTML file that needs nothing else: no script, no other file, no network.
//
// It is drawn by the components of the page in an element that is in no document, until everything that comes later (code in
// colours, formulas, pictures) is there, and then written down. `react-dom/server` would draw none of these, since they come
// with effects.

import type { BranchMessage, ConversationInfo, Throughline, WaterfallInfo } from "@throughline/client";
import { createRoot } from "react-dom/client";
import { partsOf, sumOf } from "../charts/parts.ts";
import { Waterfall } from "../charts/waterfall.tsx";
import { duration } from "../chat/clock.ts";
import { language } from "../preferences.ts";
import { ClientProvider } from "../session/context.tsx";
import { moment } from "../settings/rows.tsx";
import { styleSheet } from "./model/styles.ts";
import { ReadOnlyThread, ReadOnlyTurn } from "./read-only.tsx";
import { type SharedWords, useSharedWords } from "./words.ts";

/** The last so many messages are in a file. */
export const EXPORTED_MESSAGES_MAX = 1_000;
const PART = 200;
/** It is complete when nothing has changed for so long. */
const QUIET_MS = 500;
/** What has not come by then is left out. */
const DRAWING_MS_MAX = 30_000;
/** Nothing may load or run in the file, whatever is in it. */
const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; font-src data:; base-uri 'none'; form-action 'none'";

interface Turn {
  message: BranchMessage["message"];
  waterfall: WaterfallInfo | undefined;
}

/** The file. */
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
    // A turn without events has none, and is shown without it.
    const waterfall = await client.call("GET /v1/turns/{turn_id}/waterfall", { path }).catch(() => undefined);
    turns.push({ message, waterfall });
  }
  return { turns, isCut: before !== undefined };
}

function Exported({ title, turns, isCut }: { title: string; turns: readonly Turn[]; isCut: boolean }) {
  const own = useSharedWords();
  return (
    <main className="mx-auto max-w-190 px-4 py-6.5">
      <header className="mb-7 border-b border-line pb-4">
        <h1 className="text-[20px] font-semibold" dir="auto">
          {title || own.untitled}
        </h1>
        <p className="mt-1 text-[12.5px] text-muted">{own.exportedOn(moment(Date.now()))}</p>
        {isCut && <p className="mt-1 text-[12.5px] text-muted">{own.cut(turns.length)}</p>}
      </header>
      <ReadOnlyThread>
        <ol>
          {turns.map(({ message, waterfall }) => (
            <ReadOnlyTurn key={message.turn_id} message={message}>
              {waterfall && <Timeline own={own} waterfall={waterfall} message={message} />}
            </ReadOnlyTurn>
          ))}
        </ol>
      </ReadOnlyThread>
    </main>
  );
}

/** Where the time of the turn went. */
function Timeline({
  own,
  waterfall,
  message,
}: {
  own: SharedWords;
  waterfall: WaterfallInfo;
  message: BranchMessage["message"];
}) {
  const nameOf = (toolId: string): string | undefined => {
    const call = message.blocks.find((block) => block.kind === "tool_call" && block.tool_id === toolId);
    return call?.kind === "tool_call" ? call.tool_name : undefined;
  };
  return (
    <details className="mt-2 pl-7.5 text-[12.5px]">
      <summary className="text-muted">{own.timeline(duration(sumOf(partsOf(waterfall.segments))))}</summary>
      <Waterfall waterfall={waterfall} nameOf={nameOf} />
    </details>
  );
}

/** Waits until nothing in it changes any more. */
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

/** What does nothing without a script, and says nothing either. */
const DEAD = "input, select, textarea, script, .segments, [role=tablist]";

/** A copy in which nothing is elsewhere. */
async function standalone(element: Element): Promise<Element> {
  const copy = element.cloneNode(true) as Element;
  for (const dead of copy.querySelectorAll(DEAD)) dead.remove();
  for (const button of copy.querySelectorAll("button")) {
    // One that folds a value has the value's name on it; one with a picture alone has nothing to say.
    const said = document.createElement("span");
    said.append(...button.childNodes);
    if (said.textContent?.trim()) button.replaceWith(said);
    else button.remove();
  }
  for (const attribute of ["src", "href"]) {
    for (const one of copy.querySelectorAll(`[${attribute}^="blob:"]`)) {
      one.setAttribute(attribute, await dataUrl(one.getAttribute(attribute) ?? ""));
    }
  }
  // Ways through the page lead nowhere from a file.
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

/** The whole document. It is put together of nodes: nothing in it is read as markup. */
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
  // The styles come last and as text: as an element this page's own policy would refuse them. Nothing in front of them ends the head.
  const style = `<style>${styleSheet(document).replaceAll("</", "<\\/")}</style>`;
  const [head = "", ...rest] = whole.documentElement.outerHTML.split("</head>");
  return `<!doctype html>\n${head}${style}</head>${rest.join("</head>")}\n`;
}
