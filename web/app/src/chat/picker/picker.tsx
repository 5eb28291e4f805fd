import type { ModelEntry } from "@throughline/client";
import { Check, RotateCcw, X } from "lucide-react";
import {
  type KeyboardEvent,
  useCallback,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { useWords } from "../../i18n/use.ts";
import { answering } from "../../preferences.ts";
import { useClient } from "../../session/context.tsx";
import { openModels } from "../../shared/open-models.ts";
import { Failure } from "../../ui/failure.tsx";
import { IconButton } from "../../ui/icon-button.tsx";
import { useRequest } from "../../ui/use-request.ts";
import { MODES, mode, model } from "../composer/mode.ts";
import type { Offer } from "../composer/offer.ts";
import { useChat } from "../context.tsx";
import { found, type PickerRow, rowsOf, short } from "./model.ts";
import { recentModels, rememberModel } from "./recent.ts";
import { type PickerWords, usePickerWords } from "./words.ts";

/** Choice of the model and the tool-call mode for the next messages. */
export default function Picker({ offer, close }: { offer: Offer; close(): void }) {
  const page = useWords();
  const words = usePickerWords();
  const client = useClient();
  const { conversation } = useChat();
  const { entries, running } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const chosen = useSyncExternalStore(model.subscribe, model.get);
  const dialog = useRef<HTMLDialogElement>(null);
  const [search, setSearch] = useState("");
  const { value, error, again } = useRequest(
    useCallback((signal: AbortSignal) => client.call("GET /v1/models", { signal }), [client]),
  );
  useEffect(() => {
    if (dialog.current?.open !== false) return;
    dialog.current.showModal();
    // Below its button, if there is room.
    const button = document.querySelector(".picker-button")?.getBoundingClientRect();
    if (button && innerWidth >= 720) dialog.current.style.marginRight = `${innerWidth - button.right}px`;
  }, []);
  const end = (): void => dialog.current?.close();
  const rows = found(rowsOf(value?.data ?? [], offer.agents, recentModels()), search);
  const isChosen = (row: PickerRow): boolean =>
    row.kind === "agent" ? row.id === offer.agent : row.id === (chosen || offer.model);
  const choose = (row: PickerRow): void => {
    if (row.kind === "model") {
      rememberModel(row.id);
      model.set(row.id === offer.model ? "" : row.id);
    } else {
      const isDefault = offer.agents.some(({ name, is_default }) => name === row.id && is_default);
      answering.set(isDefault ? "" : row.id);
      model.set("");
    }
    end();
    document.querySelector<HTMLElement>("form textarea")?.focus();
  };
  const last = running === undefined ? entries.at(-1) : undefined;
  const regenerate = (row: PickerRow): void => {
    if (last === undefined) return;
    end();
    rememberModel(row.id);
    void conversation.again(last, undefined, mode.chosen(), row.id).catch(() => undefined);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const elements = [
      ...(dialog.current?.querySelectorAll<HTMLElement>("input[type=search], [data-row]") ?? []),
    ];
    const at = elements.findIndex((element) => document.activeElement?.isSameNode(element));
    if (at < 0) return;
    event.preventDefault();
    elements[at + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
  };
  return (
    <dialog
      ref={dialog}
      aria-label={words.title}
      className="sheet picker"
      onClose={close}
      onPointerDown={(event) => event.target === dialog.current && end()}
      onKeyDown={onKeyDown}
    >
      <header>
        <h2>{words.title}</h2>
        <IconButton label={page.close} onClick={end}>
          <X aria-hidden size={17} />
        </IconButton>
      </header>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (search !== "" && rows[0]) choose(rows[0]);
        }}
      >
        <input
          type="search"
          className="field"
          value={search}
          placeholder={words.search}
          aria-label={words.search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
      </form>
      {error !== undefined && <Failure error={error} again={again} />}
      {value && rows.length === 0 && <p role="status">{words.none}</p>}
      <div className="rows">
        {(["model", "agent"] as const).map((kind) => {
          const group = rows.filter((row) => row.kind === kind);
          return (
            group.length > 0 && (
              <section key={kind} aria-label={kind === "model" ? words.models : words.agents}>
                <h3 className="label">{kind === "model" ? words.models : words.agents}</h3>
                <ul>
                  {group.map((row) => (
                    <li key={row.id}>
                      <button
                        type="button"
                        data-row
                        aria-current={isChosen(row) || undefined}
                        onClick={() => choose(row)}
                      >
                        <span>
                          <b>{row.id}</b>
                          <small>{factsOf(row, offer, words)}</small>
                        </span>
                        {isChosen(row) && <Check aria-hidden size={16} />}
                      </button>
                      {last && kind === "model" && (
                        <IconButton label={words.again(row.id)} onClick={() => regenerate(row)}>
                          <RotateCcw aria-hidden size={14} />
                        </IconButton>
                      )}
                    </li>
                  ))}
                </ul>
              </section>
            )
          );
        })}
      </div>
      <Modes />
      <footer>
        <p>{words.cost(offer.tools, offer.tokens)}</p>
        <button
          type="button"
          className="button"
          onClick={() => {
            end();
            openModels();
          }}
        >
          {words.connect}
        </button>
      </footer>
    </dialog>
  );
}

function factsOf({ facts, note, id, isLastUsed, kind }: PickerRow, offer: Offer, words: PickerWords): string {
  const isDefault = kind === "agent" && offer.agents.some((one) => one.name === id && one.is_default);
  return [
    note,
    isDefault && words.isDefault,
    kind === "model" && id === offer.model && words.ofAgent,
    isLastUsed && words.lastUsed,
    facts && knownOf(facts, words),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Unknown properties are left out. */
function knownOf({ context_length, vision, audio, tools }: ModelEntry, words: PickerWords): string {
  return [
    context_length != null && words.context(short(context_length)),
    vision && words.vision,
    audio && words.audio,
    tools === true ? words.tools : tools === false && words.noTools,
  ]
    .filter(Boolean)
    .join(" · ");
}

function Modes() {
  const words = usePickerWords();
  const hint = useId();
  const chosen = useSyncExternalStore(mode.subscribe, mode.get) || "auto";
  return (
    <div className="modes">
      <fieldset className="segments" aria-describedby={hint}>
        <legend className="sr-only">{words.mode}</legend>
        {MODES.map((one) => (
          <label key={one} className="cursor-pointer">
            <input
              type="radio"
              name="mode"
              className="sr-only"
              checked={chosen === one}
              onChange={() => mode.set(one)}
            />
            {words.modeName[one]}
          </label>
        ))}
      </fieldset>
      <p id={hint}>{words.modeHint[chosen]}</p>
    </div>
  );
}
