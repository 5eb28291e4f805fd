import type { ConversationInfo, ConversationLabelList } from "@throughline/client";
import {
  Archive,
  ArchiveRestore,
  Download,
  FolderInput,
  type LucideIcon,
  Pencil,
  Pin,
  PinOff,
  Share2,
  Trash2,
} from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";
import { grouped } from "../../i18n/en.ts";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { duration } from "../../shared/format.ts";
import { failed } from "../../ui/failed.ts";
import { later } from "../../ui/later.tsx";
import { useRequest } from "../../ui/use-request.ts";
import type { ConversationList } from "./model/list.ts";
import { type ListWords, useListWords } from "./words.ts";

const Filing = later(() => import("./filing.tsx"), "above");
const Share = later(() => import("./share.tsx"), "above");

interface MenuProps {
  conversation: ConversationInfo;
  /** The button that opened the menu. */
  anchor: HTMLElement;
  list: ConversationList;
  labels: ConversationLabelList;
  close(): void;
  rename(): void;
  remove(): void;
}

/** Actions on a conversation, and its usage. */
export default function Menu({ conversation, anchor, list, labels, close, rename, remove }: MenuProps) {
  const texts = useListWords();
  const words = useWords();
  const popover = usePopover(anchor, close);
  const [dialog, setDialog] = useState<"filing" | "share">();
  const exporting = useExport(conversation, texts);
  const [failure, setFailure] = useState<unknown>();
  const change = (body: Parameters<ConversationList["change"]>[1]): void =>
    void list.change(conversation.id, body).then(close, setFailure);
  const leave = (act: () => void) => (): void => {
    close();
    act();
  };
  const isPinned = conversation.pinned_at != null;
  const isArchived = conversation.archived_at != null;
  if (dialog === "filing")
    return <Filing conversation={conversation} list={list} labels={labels} close={close} />;
  if (dialog === "share") return <Share conversation={conversation} close={close} />;
  return (
    <div
      ref={popover}
      popover="auto"
      className="menu"
      role="dialog"
      aria-label={texts.actions(conversation.title || texts.untitled)}
    >
      <Item icon={Pencil} act={leave(rename)}>
        {texts.rename}
      </Item>
      {!isArchived && (
        <Item icon={isPinned ? PinOff : Pin} act={() => change({ pinned: !isPinned })}>
          {isPinned ? texts.unpin : texts.pin}
        </Item>
      )}
      <Item icon={FolderInput} act={() => setDialog("filing")}>
        {texts.file}
      </Item>
      <Item icon={isArchived ? ArchiveRestore : Archive} act={() => change({ archived: !isArchived })}>
        {isArchived ? texts.unarchive : texts.archive}
      </Item>
      <Item icon={Share2} act={() => setDialog("share")}>
        {texts.share}
      </Item>
      <div className="menu-export">
        <Download aria-hidden size={15} />
        <span>{exporting.isBusy ? texts.exporting : texts.export}</span>
        {(["markdown", "jsonl", "html"] as const).map((format) => (
          <button
            key={format}
            type="button"
            className="chip"
            aria-label={`${texts.export}: ${texts[format]}`}
            disabled={exporting.isBusy}
            onClick={() => exporting.run(format)}
          >
            {texts[format]}
          </button>
        ))}
      </div>
      <Item icon={Trash2} act={leave(remove)} isDanger>
        {words.remove}
      </Item>
      {(failure ?? exporting.failure) !== undefined && (
        <p role="alert" className="px-2.5 py-1 text-[12.5px] text-error">
          {failed(failure ?? exporting.failure, words)}
        </p>
      )}
      <Statistics id={conversation.id} texts={texts} />
    </div>
  );
}

interface ItemProps {
  icon: LucideIcon;
  act(): void;
  isDanger?: boolean;
  children: string;
}

function Item({ icon: Icon, act, isDanger = false, children }: ItemProps) {
  return (
    <button type="button" className="menu-item" data-danger={isDanger || undefined} onClick={act}>
      <Icon aria-hidden size={15} className="flex-none" />
      {children}
    </button>
  );
}

/** Turns, calls, tokens and times of the conversation. */
function Statistics({ id, texts }: { id: string; texts: ListWords }) {
  const client = useClient();
  const ask = useCallback(
    (signal: AbortSignal) =>
      client.call("GET /v1/conversations/{conversation_id}/usage", { path: { conversation_id: id }, signal }),
    [client, id],
  );
  const { value: usage } = useRequest(ask);
  // Reserves the space, so that nothing moves under the pointer.
  const facts = usage
    ? [
        texts.turns(usage.turns),
        texts.calls(usage.calls, usage.failed_calls),
        texts.tokensIn(grouped(usage.input_tokens)),
        texts.tokensOut(grouped(usage.output_tokens)),
        texts.timeModel(duration(usage.writing_ms)),
        texts.timeTools(duration(usage.call_ms)),
      ]
    : Array.from({ length: 6 }, () => "…");
  return (
    <section aria-label={texts.statistics} className="menu-facts">
      {facts.map((fact, at) => (
        <span key={at}>{fact}</span>
      ))}
      {usage?.models.map(({ model, turns }) => (
        <span key={model} className="col-span-2 truncate" title={model}>
          {`${model} · ${texts.turns(turns)}`}
        </span>
      ))}
    </section>
  );
}

/** Opens at the button, within the window; reports when the popover closes itself. */
function usePopover(anchor: HTMLElement, close: () => void) {
  const element = useRef<HTMLDivElement>(null);
  const onClose = useRef(close);
  onClose.current = close;
  useEffect(() => {
    const menu = element.current;
    if (menu === null) return undefined;
    menu.showPopover();
    const at = anchor.getBoundingClientRect();
    const { width, height } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    menu.style.top = `${Math.max(8, Math.min(at.bottom + 4, innerHeight - height - 8))}px`;
    menu.querySelector<HTMLElement>("button")?.focus();
    const toggled = (event: Event): void => {
      if ((event as ToggleEvent).newState !== "closed") return;
      if (document.activeElement === document.body) anchor.focus();
      onClose.current();
    };
    menu.addEventListener("toggle", toggled);
    return () => menu.removeEventListener("toggle", toggled);
  }, [anchor]);
  return element;
}

type Format = "markdown" | "jsonl" | "html";

function useExport(conversation: ConversationInfo, texts: ListWords) {
  const client = useClient();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const run = async (format: Format): Promise<void> => {
    setBusy(true);
    setFailure(undefined);
    try {
      const { exportConversation } = await import("./export.ts");
      await exportConversation(client, conversation, format, texts.untitled);
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, failure, run: (format: Format) => void run(format) };
}
