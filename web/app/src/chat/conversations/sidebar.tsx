import { MessageCircleDashed, PanelLeftClose, SquarePen, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useIsWide } from "../../avatar/avatar.tsx";
import { useWords } from "../../i18n/use.ts";
import { conversationsShown } from "../../preferences.ts";
import { useClient } from "../../session/context.tsx";
import { Link } from "../../shared/link.tsx";
import { go } from "../../shared/router.ts";
import { IconButton } from "../../ui/icon-button.tsx";
import type { LateFocus } from "../../ui/late-focus.ts";
import type { ConversationStore } from "../model/conversation.ts";
import { Hits } from "./hits.tsx";
import { ConversationList, type ListState } from "./model/list.ts";
import { Rows } from "./rows.tsx";
import { temporary } from "./temporary.ts";
import { UndoToast, useDeletion } from "./undo.tsx";
import { type ListWords, useListWords } from "./words.ts";

/** Interval of refreshes while a turn of another conversation runs. */
const RUNNING_REFRESH_MS = 5_000;
/** Pause after the last keystroke before a search. */
const SEARCH_WAIT_MS = 200;

interface SidebarProps {
  conversation: ConversationStore;
  /** Focus of the search field. */
  search: LateFocus;
  /** The drawer of a narrow screen is open. */
  isOpen: boolean;
  close(): void;
}

/** The list of conversations: a sidebar, or a drawer on a narrow screen. */
export default function Sidebar({ conversation, search, isOpen, close }: SidebarProps) {
  const words = useWords();
  const isWide = useIsWide();
  const isShown = useSyncExternalStore(conversationsShown.subscribe, conversationsShown.get) === "shown";
  const list = useList(conversation, isWide ? isShown : isOpen);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isWide || !isOpen) return dialog.current?.close();
    if (dialog.current?.open === false) dialog.current.showModal();
    return undefined;
  }, [isOpen, isWide]);
  if (isWide) {
    if (!isShown) return null;
    return (
      <aside aria-label={words.conversations} className="conversations">
        <List list={list} conversation={conversation} search={search} done={() => undefined} hide={close} />
      </aside>
    );
  }
  return (
    <dialog
      ref={dialog}
      onClose={close}
      onPointerDown={(event) => event.target === dialog.current && close()}
      aria-label={words.conversations}
      className="drawer"
    >
      {isOpen && <List list={list} conversation={conversation} search={search} done={close} />}
    </dialog>
  );
}

function useList(conversation: ConversationStore, isShown: boolean): ConversationList {
  const client = useClient();
  const list = useMemo(() => new ConversationList(client), [client]);
  const { id, title, running } = useSyncExternalStore(conversation.subscribe, conversation.get);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each of them changes what the list says
  useEffect(() => {
    if (isShown) void list.refresh();
  }, [list, isShown, id, title, running?.turnId]);
  const { items } = useSyncExternalStore(list.subscribe, list.get);
  const isAnyRunning = items.some((one) => one.running_turn_id != null);
  useEffect(() => {
    if (!isShown || !isAnyRunning) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") void list.refresh();
    }, RUNNING_REFRESH_MS);
    return () => clearInterval(timer);
  }, [list, isShown, isAnyRunning]);
  return list;
}

interface ListProps {
  list: ConversationList;
  conversation: ConversationStore;
  search: LateFocus;
  /** An entry was chosen. */
  done(): void;
  /** Hides the sidebar; a drawer is closed. */
  hide?: () => void;
}

function List({ list, conversation, search, done, hide }: ListProps) {
  const words = useWords();
  const texts = useListWords();
  const state = useSyncExternalStore(list.subscribe, list.get);
  const { id: current } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const isTemporary = useSyncExternalStore(temporary.subscribe, temporary.get);
  const deletion = useDeletion(list, current);
  const begin = (isTemporary: boolean): void => {
    temporary.set(isTemporary);
    go("/");
    done();
  };
  return (
    <div className="flex h-full flex-col">
      <div className="flex h-13 flex-none items-center gap-0.5 px-2">
        <Link
          href="/"
          onClick={() => begin(false)}
          className="button quiet min-w-0 flex-1 justify-start truncate font-semibold"
        >
          <SquarePen aria-hidden size={16} className="flex-none" />
          {texts.newChat}
        </Link>
        <button
          type="button"
          className="icon-button aria-pressed:bg-accent-soft aria-pressed:text-accent"
          aria-label={texts.temporaryChat}
          title={texts.temporaryChat}
          aria-pressed={isTemporary}
          onClick={() => begin(!isTemporary)}
        >
          <MessageCircleDashed aria-hidden size={17} />
        </button>
        {hide === undefined ? (
          <IconButton label={words.close} onClick={done}>
            <X aria-hidden size={17} />
          </IconButton>
        ) : (
          <IconButton label={texts.hide} aria-expanded onClick={hide}>
            <PanelLeftClose aria-hidden size={18} />
          </IconButton>
        )}
      </div>
      <div className="flex flex-none flex-col gap-1.5 px-3 pb-2">
        <SearchField list={list} texts={texts} search={search} />
        {state.query.trim() === "" && <Filter state={state} list={list} texts={texts} />}
      </div>
      {state.query.trim() === "" ? (
        <Rows list={list} state={state} current={current} done={done} remove={deletion.remove} />
      ) : (
        <Hits list={list} state={state} done={done} />
      )}
      <UndoToast deletion={deletion} />
    </div>
  );
}

function SearchField({
  list,
  texts,
  search,
}: {
  list: ConversationList;
  texts: ListWords;
  search: LateFocus;
}) {
  const [text, setText] = useState(() => list.get().query);
  useEffect(() => {
    if (text === list.get().query) return undefined;
    const timer = setTimeout(() => void list.search(text), text === "" ? 0 : SEARCH_WAIT_MS);
    return () => clearTimeout(timer);
  }, [list, text]);
  return (
    <input
      ref={search.attach}
      type="search"
      dir="auto"
      value={text}
      placeholder={texts.search}
      aria-label={texts.search}
      onChange={(event) => setText(event.currentTarget.value)}
      className="field"
    />
  );
}

/** Choice of the whole list, the archive, a folder or a tag; not rendered without folders and archive. */
function Filter({ state, list, texts }: { state: ListState; list: ConversationList; texts: ListWords }) {
  const { folders, tags } = state.labels;
  return (
    <select
      aria-label={texts.filter}
      value={state.view}
      onChange={(event) => void list.choose(event.currentTarget.value)}
      className="field"
    >
      <option value="">{texts.all}</option>
      <option value="archived">{texts.archived}</option>
      <Labels group={texts.folders} kind="folder" labels={folders} />
      <Labels group={texts.tags} kind="tag" labels={tags} />
    </select>
  );
}

function Labels({
  group,
  kind,
  labels,
}: {
  group: string;
  kind: string;
  labels: ListState["labels"]["folders"];
}) {
  if (labels.length === 0) return null;
  return (
    <optgroup label={group}>
      {labels.map(({ name, conversations }) => (
        <option key={name} value={`${kind}:${name}`}>
          {`${name} (${conversations})`}
        </option>
      ))}
    </optgroup>
  );
}
