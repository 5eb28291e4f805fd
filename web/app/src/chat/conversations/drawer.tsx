import type { ConversationInfo } from "@throughline/client";
import { Pencil, Plus, Trash2, X } from "lucide-react";
import { type FormEvent, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { Link } from "../../shell/link.tsx";
import { go } from "../../shell/router.ts";
import { IconButton } from "../../ui/icon-button.tsx";
import type { ConversationList } from "../model/list.ts";
import { type DrawerWords, useDrawerWords } from "./words.ts";

interface DrawerProps {
  list: ConversationList;
  current: string | undefined;
  isOpen: boolean;
  close(): void;
}

/** The conversations there are. */
export default function Drawer({ list, current, isOpen, close }: DrawerProps) {
  const words = useWords();
  const own = useDrawerWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const { items, next, query, isLoading } = useSyncExternalStore(list.subscribe, list.get);
  useEffect(() => {
    const element = dialog.current;
    if (!isOpen) return element?.close();
    if (element?.open === false) element.showModal();
    void list.load();
    return undefined;
  }, [isOpen, list]);
  return (
    <dialog
      ref={dialog}
      onClose={close}
      onPointerDown={(event) => event.target === dialog.current && close()}
      aria-label={words.conversations}
      className="drawer"
    >
      <div className="flex h-full flex-col p-3">
        <div className="mb-2 flex items-center gap-1">
          <h2 className="flex-1 pl-1 text-[14px] font-semibold">{words.conversations}</h2>
          <Link
            href="/"
            className="icon-button"
            aria-label={words.newConversation}
            title={words.newConversation}
            onClick={close}
          >
            <Plus aria-hidden size={18} />
          </Link>
          <IconButton label={words.close} onClick={close}>
            <X aria-hidden size={17} />
          </IconButton>
        </div>
        <input
          type="search"
          value={query}
          placeholder={own.search}
          aria-label={own.search}
          onChange={(event) => void list.load(event.currentTarget.value)}
          className="field mb-2"
        />
        <div className="min-h-0 flex-1 overflow-auto">
          {items.length === 0 && !isLoading && (
            <p className="p-2 text-[13px] text-muted">{query === "" ? own.nothing : words.noResults}</p>
          )}
          {byDay(items, own).map(([day, items]) => (
            <section key={day}>
              <h3 className="label px-2 pt-2">{day}</h3>
              <ul>
                {items.map((one) => (
                  <Row key={one.id} one={one} list={list} isCurrent={one.id === current} close={close} />
                ))}
              </ul>
            </section>
          ))}
          {next !== undefined && (
            <button type="button" className="button quiet w-full" onClick={() => void list.more()}>
              {words.more}
            </button>
          )}
        </div>
      </div>
    </dialog>
  );
}

interface RowProps {
  one: ConversationInfo;
  list: ConversationList;
  isCurrent: boolean;
  close(): void;
}

function Row({ one, list, isCurrent, close }: RowProps) {
  const words = useWords();
  const own = useDrawerWords();
  const [draft, setDraft] = useState<string>();
  const [asks, setAsks] = useState(false);
  if (draft !== undefined) {
    const submit = (event: FormEvent): void => {
      event.preventDefault();
      setDraft(undefined);
      void list.rename(one.id, draft.trim()).catch(() => undefined);
    };
    return (
      <li>
        <form onSubmit={submit} className="p-1">
          <input
            // biome-ignore lint/a11y/noAutofocus: whoever presses Rename wants to type
            autoFocus
            value={draft}
            aria-label={own.rename}
            onChange={(event) => setDraft(event.currentTarget.value)}
            onBlur={() => setDraft(undefined)}
            className="field"
          />
        </form>
      </li>
    );
  }
  const remove = (): void => {
    if (!asks) return setAsks(true);
    void list
      .remove(one.id)
      .then(() => isCurrent && go("/"))
      .catch(() => setAsks(false));
  };
  return (
    <li className="group/row flex items-center rounded-control hover:bg-sunken has-aria-[current]:bg-accent-soft">
      <Link
        href={`/c/${one.id}`}
        aria-current={isCurrent ? "page" : undefined}
        onClick={close}
        className="min-w-0 flex-1 truncate px-2 py-1.5 text-[13.5px]"
      >
        {one.title || own.untitled}
        {one.running_turn_id != null && (
          <span className="ml-2 text-[12px] text-thread-ink">{own.runningNow}</span>
        )}
      </Link>
      <span className="flex opacity-0 group-focus-within/row:opacity-100 group-hover/row:opacity-100 [@media(hover:none)]:opacity-100">
        <IconButton label={`${own.rename}: ${one.title}`} onClick={() => setDraft(one.title)}>
          <Pencil aria-hidden size={13} />
        </IconButton>
        <button
          type="button"
          className={asks ? "button danger" : "icon-button"}
          aria-label={`${asks ? words.confirmRemove : words.remove}: ${one.title}`}
          onClick={remove}
          onBlur={() => setAsks(false)}
        >
          {asks ? words.confirmRemove : <Trash2 aria-hidden size={13} />}
        </button>
      </span>
    </li>
  );
}

/** By the day on which something last happened. */
function byDay(
  items: readonly ConversationInfo[],
  own: DrawerWords,
): readonly (readonly [string, readonly ConversationInfo[]])[] {
  const today = new Date().setHours(0, 0, 0, 0);
  const days = new Map<string, ConversationInfo[]>();
  for (const one of items) {
    const at = one.updated_at;
    const day = at >= today ? own.today : at >= today - 86_400_000 ? own.yesterday : own.earlier;
    days.set(day, [...(days.get(day) ?? []), one]);
  }
  return [...days];
}
