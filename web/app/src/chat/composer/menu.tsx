import type { AgentInfo, SavedPrompt } from "@throughline/client";
import { type KeyboardEvent, type RefObject, useEffect, useState, useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { agentAddress } from "../../shared/agents-address.ts";
import { openModels } from "../../shared/open-models.ts";
import { go } from "../../shared/router.ts";
import { useChat } from "../context.tsx";
import { openPicker } from "../picker/open.ts";
import { libraryOf, typedIn } from "../prompts/library.ts";
import { agentsFor, type Command, commandsFor } from "./commands.ts";
import { useMenuWords } from "./menu-words.ts";
import { mode } from "./mode.ts";

/** Handles a key that was pressed in the field; returns whether it was handled. */
export type MenuKey = (event: KeyboardEvent) => boolean;

interface MenuProps {
  id: string;
  text: string;
  put(text: string): void;
  agents: readonly AgentInfo[];
  /** Agent that answers by default. */
  answers: string | undefined;
  /** Opens the library, or a prompt that has placeholders. */
  openPrompts(chosen?: SavedPrompt): void;
  /** Set to the menu's key handler while it is open. */
  keys: RefObject<MenuKey | undefined>;
  /** Reports the id of the active entry, for screen readers; `undefined`: none. */
  activate(id: string | undefined): void;
}

interface Item {
  name: string;
  note: string;
  take(): void;
}

/** Commands after `/`, or agents after `@`, above the field. */
export default function Menu({ id, text, put, agents, answers, openPrompts, keys, activate }: MenuProps) {
  const page = useWords();
  const words = useMenuWords();
  const client = useClient();
  const { conversation } = useChat();
  const {
    id: opened,
    title,
    entries,
    running,
  } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const [at, setAt] = useState(0);
  /** Text for which the menu was closed. */
  const [closed, setClosed] = useState<string>();
  const isAgents = text.startsWith("@");
  const library = libraryOf(client);
  const { prompts = [] } = useSyncExternalStore(library.subscribe, library.get);
  useEffect(() => void library.load(), [library]);

  const save = async (format: "markdown" | "html"): Promise<void> => {
    if (opened === undefined) return;
    const { exportConversation } = await import("../conversations/export.ts");
    await exportConversation(client, { id: opened, title }, format, page.newConversation);
  };
  const run: Record<Command, () => void> = {
    new: () => go("/"),
    retry: () => {
      const last = entries.at(-1);
      if (last) void conversation.again(last, undefined, mode.chosen()).catch(() => undefined);
    },
    model: openPicker,
    agent: () => put("@"),
    system: () => go(answers === undefined ? "/agents" : agentAddress(answers)),
    prompts: () => openPrompts(),
    save: () => void save("markdown").catch(conversation.fail),
    export: () => void save("html").catch(conversation.fail),
    connect: openModels,
  };
  const items: Item[] = isAgents
    ? agentsFor(text, agents).map(({ name, model }) => ({
        name: `@${name}`,
        note: model ?? "",
        take: () => put(`@${name} `),
      }))
    : [
        ...commandsFor(text, opened !== undefined && running === undefined).map((name) => ({
          name: `/${name}`,
          note: words.does[name],
          take: () => {
            put("");
            run[name]();
          },
        })),
        ...typedIn(prompts, text).map((prompt) => ({
          name: prompt.name,
          note: prompt.text,
          take: () => openPrompts(prompt),
        })),
      ];
  const isOpen = items.length > 0 && closed !== text;
  const active = Math.min(at, items.length - 1);
  const activeId = isOpen ? `${id}-${active}` : undefined;

  useEffect(() => {
    keys.current = (event) => {
      if (!isOpen) return false;
      switch (event.key) {
        case "ArrowDown":
        case "ArrowUp": {
          const by = event.key === "ArrowDown" ? 1 : items.length - 1;
          setAt((active + by) % items.length);
          return true;
        }
        case "Enter":
        case "Tab":
          if (event.shiftKey || event.altKey) return false;
          items[active]?.take();
          setAt(0);
          return true;
        case "Escape":
          setClosed(text);
          return true;
        default:
          return false;
      }
    };
    activate(activeId);
  });
  // The active entry may be out of view.
  useEffect(() => {
    if (activeId !== undefined) document.getElementById(activeId)?.scrollIntoView({ block: "nearest" });
  }, [activeId]);
  useEffect(
    () => () => {
      keys.current = undefined;
      activate(undefined);
    },
    [keys, activate],
  );
  if (!isOpen) return null;
  return (
    <div
      id={id}
      role="listbox"
      aria-label={isAgents ? words.agents : words.commands}
      className="composer-menu"
    >
      {items.map(({ name, note, take }, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field, which keeps the focus
        <div
          key={index}
          id={`${id}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === active}
          onMouseDown={(event) => event.preventDefault()}
          onClick={take}
        >
          <b dir="auto">{name}</b>
          <span dir="auto">{note}</span>
        </div>
      ))}
    </div>
  );
}
