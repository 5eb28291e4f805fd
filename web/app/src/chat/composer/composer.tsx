import type { SavedPrompt } from "@throughline/client";
import { ArrowUp, BookText, Paperclip, Square } from "lucide-react";
import {
  type ClipboardEvent,
  type FormEvent,
  type KeyboardEvent,
  type Ref,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { flushSync } from "react-dom";
import { useWords } from "../../i18n/use.ts";
import { later } from "../../ui/later.tsx";
import { useChat } from "../context.tsx";
import type { DraftPart } from "../model/entry.ts";
import type { Attachments } from "./attachments.ts";
import { addressed, isOpening } from "./commands.ts";
import { draftOf, keepDraft } from "./drafts.ts";
import type { MenuKey } from "./menu.tsx";
import { mode } from "./mode.ts";
import type { Offer } from "./offer.ts";
import { QueuedMessages } from "./queued-messages.tsx";

const Menu = later(() => import("./menu.tsx"));
const Prompts = later(() => import("../prompts/dialog.tsx"), "above");
const Attached = later(() => import("./files/attached.tsx"));

interface ComposerProps {
  attachments: Attachments;
  offer: Offer | undefined;
  field: Ref<HTMLTextAreaElement>;
  /** A message was sent. */
  onSent(): void;
}

/** Message field with attachments, commands and the send button. */
export function Composer({ attachments, offer, field, onSent }: ComposerProps) {
  const words = useWords();
  const { conversation } = useChat();
  const { id, phase, running, isStopping, connection } = useSyncExternalStore(
    conversation.subscribe,
    conversation.get,
  );
  const { list, refused } = useSyncExternalStore(attachments.subscribe, attachments.get);
  const [text, setText] = useState(() => draftOf(id));
  const texts = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isSending = list.some((one) => one.part === undefined);
  const isUnsent = running?.turnId === undefined && connection?.state === "waiting";
  const isEmpty = text.trim() === "" && list.length === 0;
  /** A message that waits for a loading file, and is sent with it. */
  const [held, setHeld] = useState<{ when: "now" | "after_turn"; refusals: number }>();

  const menu = useId();
  const menuKey = useRef<MenuKey>(undefined);
  const [active, setActive] = useState<string>();
  const isMenu = isOpening(text);
  const [library, setLibrary] = useState<{ chosen: SavedPrompt | undefined }>();

  const put = (text: string): void => {
    setText(text);
    keepDraft(conversation.get().id, text);
  };
  // Each conversation has its own draft; a new conversation takes over what was typed before it existed.
  const [shown, setShown] = useState(id);
  if (shown !== id) {
    setShown(id);
    if (phase === "ready" && shown === undefined) {
      keepDraft(undefined, "");
      keepDraft(id, text);
    } else setText(draftOf(id));
  }

  useLayoutEffect(() => fit(texts.current, text), [text]);
  useEffect(() => {
    if (typeof field === "function") field(texts.current);
    else if (field) field.current = texts.current;
  }, [field]);

  /** Inserts at the caret, and replaces the selection. */
  const insert = (prompt: string): void => {
    const field = texts.current;
    if (field === null) return;
    const before = field.value.slice(0, field.selectionStart) + prompt;
    const after = field.value.slice(field.selectionEnd);
    flushSync(() => put(before + after));
    field.focus();
    field.setSelectionRange(before.length, before.length);
  };
  const restore = (draft: string, files: readonly DraftPart[] = []): void => {
    attachments.restore(files);
    if (texts.current?.value === "") put(draft);
    texts.current?.focus();
  };
  const say = async (when: "now" | "after_turn"): Promise<void> => {
    // A turn that has not started takes no steering: the text stays in the field.
    if (isEmpty || (running !== undefined && running.turnId === undefined)) return;
    if (isSending) return setHeld({ when, refusals: refused.length });
    setHeld(undefined);
    const taken = attachments.take();
    const to = addressed(text, running === undefined ? (offer?.agents ?? []) : []);
    // The text comes first: conversations are named after it.
    const draft: DraftPart[] = [
      ...(text.trim() === "" ? [] : [{ type: "text" as const, text: to.text }]),
      ...taken.flatMap((one) => one.part ?? []),
    ];
    put("");
    onSent();
    if (running !== undefined)
      return await conversation.steer(draft, when === "now" ? "next_step" : "after_turn");
    try {
      await conversation.send(draft, mode.chosen(), to.agent);
    } catch {
      // Refused and retracted messages can be sent again.
      restore(text);
      attachments.putBack(taken);
    }
  };
  const go = useRef(say);
  useEffect(() => {
    go.current = say;
  });
  useEffect(() => {
    if (held === undefined || isSending) return;
    if (refused.length > held.refusals) setHeld(undefined);
    else void go.current(held.when);
  }, [held, isSending, refused]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void say("now");
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    // Enter also ends an IME composition; Safari reports that with keyCode 229.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (menuKey.current?.(event)) return event.preventDefault();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void say(event.altKey ? "after_turn" : "now");
  };
  const onPaste = (event: ClipboardEvent): void => {
    // Spreadsheets copy cells as text and as a picture.
    if (event.clipboardData.files.length === 0 || event.clipboardData.getData("text/plain") !== "") return;
    event.preventDefault();
    void attachments.add(event.clipboardData.files);
  };
  return (
    <>
      {library && (
        <Prompts
          chosen={library.chosen}
          draft={isMenu ? "" : text}
          insert={insert}
          close={() => setLibrary(undefined)}
        />
      )}
      <form onSubmit={submit} className="relative mx-auto w-full max-w-190">
        <QueuedMessages restore={restore} />
        {isMenu && (
          <Menu
            id={menu}
            text={text}
            put={put}
            agents={offer?.agents ?? []}
            answers={offer?.agent}
            openPrompts={(chosen) => {
              flushSync(() => put(""));
              // A prompt without placeholders needs no dialog.
              if (chosen && !chosen.text.includes("{{")) insert(chosen.text);
              else setLibrary({ chosen });
            }}
            keys={menuKey}
            activate={setActive}
          />
        )}
        <div className="rounded-[18px] border border-line-strong bg-surface py-2.5 pr-3 pl-4 shadow-card focus-within:border-accent">
          {list.length + refused.length > 0 && <Attached attachments={attachments} />}
          <textarea
            ref={texts}
            dir="auto"
            rows={1}
            value={text}
            aria-label={words.message}
            aria-autocomplete="list"
            aria-controls={active && menu}
            aria-activedescendant={active}
            placeholder={running === undefined ? words.placeholder : words.placeholderRunning}
            onChange={(event) => put(event.currentTarget.value)}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
            className="block max-h-50 min-h-6.5 w-full resize-none bg-transparent leading-6.5 outline-none placeholder:text-muted"
          />
          <div className="composer-row">
            <button
              type="button"
              className="icon-button -ml-1.5"
              aria-label={words.attach}
              title={words.attach}
              onClick={() => picker.current?.click()}
            >
              <Paperclip aria-hidden size={17} />
            </button>
            <button
              type="button"
              className="icon-button"
              aria-label={words.savedPrompts}
              aria-haspopup="dialog"
              title={words.savedPrompts}
              onClick={() => setLibrary({ chosen: undefined })}
            >
              <BookText aria-hidden size={17} />
            </button>
            <input
              ref={picker}
              type="file"
              multiple
              hidden
              onChange={(event) => {
                // The field is cleared before the files are read.
                void attachments.add([...(event.currentTarget.files ?? [])]);
                event.currentTarget.value = "";
              }}
            />
            <span className="ends">
              {running?.turnId !== undefined && !isEmpty && (
                <>
                  <button
                    type="button"
                    className="button"
                    title={words.queueHint}
                    onClick={() => void say("after_turn")}
                  >
                    {words.queue}
                  </button>
                  <button type="submit" className="button primary" title={words.steerHint}>
                    {words.steer}
                  </button>
                </>
              )}
              {running !== undefined ? (
                // Never the same element as the send button: a press could begin on one and end on the other.
                <button
                  key="stop"
                  type="button"
                  disabled={isStopping}
                  onClick={() => void conversation.stop()}
                  className="stop"
                >
                  <Square aria-hidden size={10} fill="currentColor" />
                  {isUnsent ? words.unsend : isStopping ? words.stopping : words.stop}
                </button>
              ) : (
                <button
                  key="send"
                  type="submit"
                  disabled={isEmpty}
                  aria-label={words.send}
                  title={words.send}
                  className="grid size-8.5 place-items-center rounded-full bg-accent text-accent-ink disabled:bg-sunken disabled:text-muted"
                >
                  <ArrowUp aria-hidden size={17} strokeWidth={2.4} />
                </button>
              )}
            </span>
          </div>
        </div>
      </form>
    </>
  );
}

/** Fits the height of the field to its text. */
function fit(field: HTMLTextAreaElement | null, text: string): void {
  if (field === null) return;
  field.style.height = "auto";
  if (text !== "") field.style.height = `${field.scrollHeight}px`;
}
