import type { SavedPrompt } from "@throughline/client";
import { ArrowLeft, Pencil, Plus, X } from "lucide-react";
import {
  type FormEvent,
  type KeyboardEvent,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { Failure } from "../../ui/failure.tsx";
import { IconButton } from "../../ui/icon-button.tsx";
import { foundIn, libraryOf, type PromptLibrary } from "./library.ts";
import { filledIn, placeholdersIn } from "./placeholders.ts";
import { usePromptWords } from "./words.ts";

type Step = { is: "list" } | { is: "edit"; prompt?: SavedPrompt } | { is: "fill"; prompt: SavedPrompt };

interface PromptsProps {
  /** A prompt that was chosen already: only its placeholders are filled in. */
  chosen: SavedPrompt | undefined;
  /** Text in the composer, offered as a new prompt. */
  draft: string;
  insert(text: string): void;
  close(): void;
}

/** The user's prompts: one is chosen, filled in and inserted into the message. */
export default function Prompts({ chosen, draft, insert, close }: PromptsProps) {
  const page = useWords();
  const words = usePromptWords();
  const library = libraryOf(useClient());
  const dialog = useRef<HTMLDialogElement>(null);
  const [step, setStep] = useState<Step>(chosen ? { is: "fill", prompt: chosen } : { is: "list" });
  useEffect(() => {
    if (dialog.current?.open === false) {
      dialog.current.showModal();
      // Content rendered before the dialog opens is not focused, so its close button would be.
      dialog.current.querySelector<HTMLElement>("input, textarea")?.focus();
    }
    void library.load();
  }, [library]);
  const end = (): void => dialog.current?.close();
  const put = (text: string): void => {
    end();
    insert(text);
  };
  const use = (prompt: SavedPrompt): void => {
    if (placeholdersIn(prompt.text).length === 0) put(prompt.text);
    else setStep({ is: "fill", prompt });
  };
  const toList = (): void => setStep({ is: "list" });
  const title =
    step.is === "fill"
      ? words.fill(step.prompt.name)
      : step.is === "list"
        ? words.title
        : step.prompt
          ? words.edit(step.prompt.name)
          : words.create;
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      className="sheet prompts"
      onClose={close}
      onPointerDown={(event) => event.target === dialog.current && end()}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <header>
        {step.is !== "list" && chosen === undefined && (
          <IconButton label={words.back} onClick={toList}>
            <ArrowLeft aria-hidden size={17} />
          </IconButton>
        )}
        <h2>
          <bdi>{title}</bdi>
        </h2>
        <IconButton label={page.close} onClick={end}>
          <X aria-hidden size={17} />
        </IconButton>
      </header>
      {step.is === "list" ? (
        <List
          library={library}
          use={use}
          edit={(prompt) => setStep({ is: "edit", ...(prompt && { prompt }) })}
        />
      ) : step.is === "edit" ? (
        <Editor library={library} prompt={step.prompt} draft={draft} done={toList} />
      ) : (
        <Filling prompt={step.prompt} put={put} />
      )}
    </dialog>
  );
}

interface ListProps {
  library: PromptLibrary;
  use(prompt: SavedPrompt): void;
  edit(prompt?: SavedPrompt): void;
}

function List({ library, use, edit }: ListProps) {
  const page = useWords();
  const words = usePromptWords();
  const { prompts, failure } = useSyncExternalStore(library.subscribe, library.get);
  const [search, setSearch] = useState("");
  const found = foundIn(prompts ?? [], search);
  const list = useRef<HTMLUListElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const form = event.currentTarget;
    const elements = [...form.querySelectorAll<HTMLElement>("input[type=search], [data-row]")];
    const at = elements.findIndex((element) => document.activeElement?.isSameNode(element));
    if (at < 0) return;
    event.preventDefault();
    elements[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (search.trim() !== "" && found[0]) use(found[0]);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: arrow keys move between what can be reached by Tab as well
    <div className="rows" onKeyDown={onKeyDown}>
      <form onSubmit={submit}>
        <input
          type="search"
          className="field"
          // biome-ignore lint/a11y/noAutofocus: whoever opens it looks for one
          autoFocus
          aria-label={words.search}
          placeholder={words.search}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      </form>
      {failure !== undefined && <Failure error={failure} again={() => void library.load()} />}
      {prompts === undefined && failure === undefined && <p className="text-muted">{page.loading}</p>}
      {prompts !== undefined && found.length === 0 && (
        <p className="text-muted">{prompts.length === 0 ? words.none : words.noMatch}</p>
      )}
      <ul ref={list}>
        {found.map((prompt) => (
          <li key={prompt.name}>
            <button type="button" data-row title={words.use(prompt.name)} onClick={() => use(prompt)}>
              <b dir="auto">{prompt.name}</b>
              <small dir="auto">{prompt.text}</small>
            </button>
            <IconButton label={words.edit(prompt.name)} onClick={() => edit(prompt)}>
              <Pencil aria-hidden size={15} />
            </IconButton>
          </li>
        ))}
      </ul>
      <footer>
        <button type="button" className="button" onClick={() => edit()}>
          <Plus aria-hidden size={15} />
          {words.create}
        </button>
      </footer>
    </div>
  );
}

interface EditorProps {
  library: PromptLibrary;
  prompt: SavedPrompt | undefined;
  draft: string;
  done(): void;
}

function Editor({ library, prompt, draft, done }: EditorProps) {
  const page = useWords();
  const words = usePromptWords();
  const hint = useId();
  const [name, setName] = useState(prompt?.name ?? "");
  const [text, setText] = useState(prompt?.text ?? draft);
  const [isSure, setSure] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const act = (what: Promise<void>): void => void what.then(done, setFailure);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    act(library.save(name.trim(), text, prompt));
  };
  return (
    <form className="body" onSubmit={submit}>
      <label>
        {words.name}
        <input
          className="field"
          dir="auto"
          required
          maxLength={60}
          // biome-ignore lint/a11y/noAutofocus: whoever presses the button wants to type
          autoFocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label>
        {words.text}
        <textarea
          className="field"
          dir="auto"
          required
          rows={8}
          maxLength={20_000}
          aria-describedby={hint}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <p id={hint} className="text-muted">
        {words.hint}
      </p>
      {failure !== undefined && <Failure error={failure} />}
      <footer>
        {prompt && (
          <button
            type="button"
            className="button danger"
            onClick={() => (isSure ? act(library.remove(prompt.name)) : setSure(true))}
          >
            {isSure ? words.removeSure(prompt.name) : words.remove}
          </button>
        )}
        <span className="flex-1" />
        <button type="button" className="button" onClick={done}>
          {page.cancel}
        </button>
        <button type="submit" className="button primary">
          {words.save}
        </button>
      </footer>
    </form>
  );
}

/** Form for the placeholders of a prompt. Enter continues, as in the composer. */
function Filling({ prompt, put }: { prompt: SavedPrompt; put(text: string): void }) {
  const words = usePromptWords();
  const [answers, setAnswers] = useState<Readonly<Record<string, string>>>({});
  const form = useRef<HTMLFormElement>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    put(filledIn(prompt.text, answers));
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing || event.keyCode === 229)
      return;
    event.preventDefault();
    const fields = [...(form.current?.querySelectorAll("textarea") ?? [])];
    const next = fields[fields.indexOf(event.currentTarget) + 1];
    if (next) next.focus();
    else form.current?.requestSubmit();
  };
  return (
    <form ref={form} className="body" onSubmit={submit}>
      {placeholdersIn(prompt.text).map((name, at) => (
        <label key={name}>
          <bdi>{name}</bdi>
          <textarea
            className="field"
            dir="auto"
            rows={1}
            // biome-ignore lint/a11y/noAutofocus: the dialog is there to be filled in
            autoFocus={at === 0}
            value={answers[name] ?? ""}
            onChange={(event) => setAnswers({ ...answers, [name]: event.currentTarget.value })}
            onKeyDown={onKeyDown}
          />
        </label>
      ))}
      <p className="preview" dir="auto">
        {prompt.text}
      </p>
      <footer>
        <span className="flex-1" />
        <button type="submit" className="button primary">
          {words.insert}
        </button>
      </footer>
    </form>
  );
}
