import { useVirtualizer } from "@tanstack/react-virtual";
import type { ConversationInfo } from "@throughline/client";
import { Ellipsis, Pin } from "lucide-react";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { language } from "../../preferences.ts";
import { Link } from "../../shared/link.tsx";
import { later } from "../../ui/later.tsx";
import { type GroupName, type ListRow, rowsOf } from "./model/groups.ts";
import type { ConversationList, ListState } from "./model/list.ts";
import { type ListWords, useListWords } from "./words.ts";

/** Loaded when the first menu is opened. */
const Menu = later(() => import("./menu.tsx"), "above");

const GROUP_PX = 34;
const ROW_PX = 36;
/** Rows that are rendered outside of the visible area. */
const OVERSCAN = 8;

interface RowsProps {
  list: ConversationList;
  state: ListState;
  current: string | undefined;
  done(): void;
  remove(conversation: ConversationInfo): void;
}

/** The virtualized list of conversations. */
export function Rows({ list, state, current, done, remove }: RowsProps) {
  const words = useWords();
  const texts = useListWords();
  const { items, next, isLoading, view } = state;
  const rows = useMemo(() => rowsOf(items, Date.now()), [items]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (rows[at]?.kind === "group" ? GROUP_PX : ROW_PX),
    getItemKey: (at) => keyOf(rows[at]),
    overscan: OVERSCAN,
  });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (next !== undefined && last >= rows.length - OVERSCAN) void list.more();
  }, [list, next, last, rows.length]);
  const [renaming, setRenaming] = useState<string>();
  const [menu, setMenu] = useState<{ conversation: ConversationInfo; anchor: HTMLElement }>();
  return (
    <nav ref={scroller} aria-label={words.conversations} className="min-h-0 flex-1 overflow-auto px-2 pb-2">
      {rows.length === 0 && !isLoading && (
        <p className="p-2 text-[13px] text-muted">{view === "" ? texts.nothing : texts.nothingHere}</p>
      )}
      <ul className="relative" style={{ height: virtual.getTotalSize() }}>
        {shown.map(({ index, key, start, size }) => {
          const row = rows[index];
          return (
            <li
              key={key}
              className="absolute inset-x-0 top-0"
              style={{ height: size, transform: `translateY(${start}px)` }}
            >
              {row?.kind === "group" && <h2 className="label px-2 pt-2">{groupWord(row.name, texts)}</h2>}
              {row?.kind === "conversation" &&
                (renaming === row.conversation.id ? (
                  <Rename list={list} conversation={row.conversation} done={() => setRenaming(undefined)} />
                ) : (
                  <Row
                    conversation={row.conversation}
                    isCurrent={row.conversation.id === current}
                    done={done}
                    open={(anchor) => setMenu({ conversation: row.conversation, anchor })}
                  />
                ))}
            </li>
          );
        })}
      </ul>
      {menu && (
        <Menu
          key={menu.conversation.id}
          {...menu}
          list={list}
          labels={state.labels}
          close={() => setMenu(undefined)}
          rename={() => setRenaming(menu.conversation.id)}
          remove={() => remove(menu.conversation)}
        />
      )}
    </nav>
  );
}

function keyOf(row: ListRow | undefined): string {
  if (row === undefined) return "";
  return row.kind === "group" ? `group ${row.name}` : row.conversation.id;
}

function groupWord(name: GroupName, texts: ListWords): string {
  if (typeof name !== "number") return texts[name];
  return new Intl.DateTimeFormat(language.get(), { month: "long", year: "numeric" }).format(name);
}

interface RowProps {
  conversation: ConversationInfo;
  isCurrent: boolean;
  done(): void;
  open(anchor: HTMLElement): void;
}

function Row({ conversation, isCurrent, done, open }: RowProps) {
  const texts = useListWords();
  const title = conversation.title || texts.untitled;
  const state = conversation.awaits_approval
    ? "asking"
    : conversation.running_turn_id != null
      ? "running"
      : undefined;
  const facts = [conversation.folder, ...conversation.tags.map((tag) => `#${tag}`)]
    .filter(Boolean)
    .join(" · ");
  return (
    <div className="conversation-row">
      <Link
        href={`/c/${conversation.id}`}
        aria-current={isCurrent ? "page" : undefined}
        onClick={done}
        title={facts === "" ? title : `${title}\n${facts}`}
        dir="auto"
      >
        {title}
      </Link>
      {state && (
        <span className="state" data-state={state}>
          {texts[state]}
        </span>
      )}
      {conversation.pinned_at != null && <Pin aria-hidden size={13} className="flex-none text-muted" />}
      <button
        type="button"
        className="icon-button"
        aria-label={texts.actions(title)}
        title={texts.actions(title)}
        aria-haspopup="dialog"
        onClick={(event) => open(event.currentTarget)}
      >
        <Ellipsis aria-hidden size={16} />
      </button>
    </div>
  );
}

function Rename({
  list,
  conversation,
  done,
}: {
  list: ConversationList;
  conversation: ConversationInfo;
  done(): void;
}) {
  const texts = useListWords();
  const [title, setTitle] = useState(conversation.title);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    done();
    void list.change(conversation.id, { title: title.trim() }).catch(() => undefined);
  };
  return (
    <form onSubmit={submit} className="p-0.5">
      <input
        // biome-ignore lint/a11y/noAutofocus: whoever chooses Rename wants to type
        autoFocus
        dir="auto"
        value={title}
        aria-label={texts.newName}
        onFocus={(event) => event.currentTarget.select()}
        onChange={(event) => setTitle(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          done();
        }}
        onBlur={done}
        className="field"
      />
    </form>
  );
}
