import { ArrowUp, ImagePlus, Square, X } from "lucide-react";
import {
  type ClipboardEvent,
  type FormEvent,
  type KeyboardEvent,
  type Ref,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { openModels } from "../../connect/open.ts";
import { useWords } from "../../i18n/use.ts";
import { useChat } from "../context.tsx";
import type { Said } from "../model/entry.ts";
import { MODES, mode } from "./mode.ts";
import type { Offer } from "./offer.ts";
import type { Pictures } from "./pictures.ts";
import { Waiting } from "./waiting.tsx";

interface ComposerProps {
  pictures: Pictures;
  offer: Offer | undefined;
  field: Ref<HTMLTextAreaElement>;
  /** Something was said. */
  onSaid(): void;
}

/** Where one says something. */
export function Composer({ pictures, offer, field, onSaid }: ComposerProps) {
  const words = useWords();
  const { conversation } = useChat();
  const { running, isStopping } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const list = useSyncExternalStore(pictures.subscribe, pictures.get);
  const [text, setText] = useState("");
  const [refused, setRefused] = useState<readonly string[]>([]);
  const own = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isSending = list.some((picture) => picture.fileId === undefined);
  const isEmpty = text.trim() === "" && list.length === 0;
  /** Said while a picture was still on its way: it goes as soon as that has arrived. */
  const [held, setHeld] = useState<"now" | "after_turn">();

  useLayoutEffect(() => fit(own.current, text), [text]);
  useEffect(() => {
    if (typeof field === "function") field(own.current);
    else if (field) field.current = own.current;
  }, [field]);

  const add = (files: Iterable<File>): void => void pictures.add(files).then(setRefused);
  const say = async (when: "now" | "after_turn"): Promise<void> => {
    if (isEmpty) return;
    if (isSending) return setHeld(when);
    setHeld(undefined);
    const images = pictures.take().flatMap(({ fileId, url, name }): Said[] => {
      return fileId === undefined ? [] : [{ type: "image", file_id: fileId, url, name }];
    });
    const said: Said[] = [...images, ...(text.trim() === "" ? [] : [{ type: "text" as const, text }])];
    setText("");
    setRefused([]);
    onSaid();
    if (running !== undefined)
      return await conversation.say(said, when === "now" ? "next_step" : "after_turn");
    try {
      await conversation.send(said, mode.chosen());
    } catch {
      // What was not taken can be sent again.
      setText((typed) => typed || text);
    }
  };
  const go = useRef(say);
  useEffect(() => {
    go.current = say;
  });
  useEffect(() => {
    if (held !== undefined && !isSending) void go.current(held);
  }, [held, isSending]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void say("now");
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    // Enter ends the composition of Chinese and the like; 229 is how Safari says so.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void say(event.altKey ? "after_turn" : "now");
  };
  const onPaste = (event: ClipboardEvent): void => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  return (
    <form onSubmit={submit} className="mx-auto w-full max-w-190">
      <Waiting />
      <div className="rounded-[18px] border border-line-strong bg-surface py-2.5 pr-3 pl-4 shadow-card focus-within:border-accent">
        {list.length > 0 && (
          <ul className="mb-2 flex flex-wrap gap-2">
            {list.map(({ key, name, url, fileId }) => (
              <li key={key} className="relative">
                <img
                  src={url}
                  alt={name}
                  className={`size-16 rounded-control object-cover ${fileId === undefined ? "opacity-50" : ""}`}
                />
                <button
                  type="button"
                  aria-label={`${words.removePicture}: ${name}`}
                  onClick={() => pictures.remove(key)}
                  className="absolute -top-2 -right-2 grid size-6 place-items-center rounded-full border border-line-strong bg-surface"
                >
                  <X aria-hidden size={13} />
                </button>
              </li>
            ))}
          </ul>
        )}
        {refused.map((name) => (
          <p key={name} role="alert" className="mb-1 text-[12.5px] text-error">
            {words.pictureFailed(name)}
          </p>
        ))}
        <textarea
          ref={own}
          rows={1}
          value={text}
          aria-label={words.message}
          placeholder={running === undefined ? words.placeholder : words.placeholderRunning}
          onChange={(event) => setText(event.currentTarget.value)}
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
            <ImagePlus aria-hidden size={17} />
          </button>
          <input
            ref={picker}
            type="file"
            accept="image/*"
            multiple
            hidden
            onChange={(event) => {
              add(event.currentTarget.files ?? []);
              event.currentTarget.value = "";
            }}
          />
          <ModeSwitch />
          {offer && (
            <button type="button" title={words.connectHow} className="model" onClick={openModels}>
              {offer.model}
            </button>
          )}
          {offer && (
            <span className="offer">
              {words.tools(offer.tools)} · {words.tokens(offer.tokens)}
            </span>
          )}
          <span className="ends">
            {running !== undefined && !isEmpty && (
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
              <button
                type="button"
                disabled={isStopping || running.turnId === undefined}
                onClick={() => void conversation.stop()}
                className="stop"
              >
                <Square aria-hidden size={10} fill="currentColor" />
                {isStopping ? words.stopping : words.stop}
              </button>
            ) : (
              <button
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
  );
}

/** As high as its text. */
function fit(field: HTMLTextAreaElement | null, text: string): void {
  if (field === null) return;
  field.style.height = "auto";
  if (text !== "") field.style.height = `${field.scrollHeight}px`;
}

function ModeSwitch() {
  const words = useWords();
  const chosen = useSyncExternalStore(mode.subscribe, mode.get) || "auto";
  return (
    <fieldset className="segments">
      <legend className="sr-only">{words.mode}</legend>
      {MODES.map((one) => (
        <label key={one} title={words.modeHint(one)} className="cursor-pointer">
          <input
            type="radio"
            name="mode"
            className="sr-only"
            checked={chosen === one}
            onChange={() => mode.set(one)}
          />
          {words.modeName(one)}
        </label>
      ))}
    </fieldset>
  );
}
