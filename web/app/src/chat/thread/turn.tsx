import type { BlockPosition, UserPart } from "@throughline/client";
import { useHead, useOutline } from "@throughline/client/react";
import { ChevronLeft, ChevronRight, Pencil, RotateCcw } from "lucide-react";
import { type FormEvent, memo, useMemo, useState, useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { duration } from "../../shared/format.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { IconButton } from "../../ui/icon-button.tsx";
import { BlockView } from "../blocks/block.tsx";
import { Group } from "../card/group.tsx";
import { mode } from "../composer/mode.ts";
import { EntryProvider, useChat, useEntry } from "../context.tsx";
import { type DraftPart, type Entry, wordsIn } from "../model/entry.ts";
import { tokensPerSecond } from "../model/figures.ts";
import { type Row, rowsOf } from "../model/groups.ts";
import { Rating } from "./rating.tsx";
import { DraftParts, UserParts } from "./user.tsx";

/** The user's message and the answer. */
export const TurnView = memo(function TurnView({ entry, isRunning }: { entry: Entry; isRunning: boolean }) {
  return (
    <EntryProvider value={entry}>
      <li className="mb-8">
        <UserMessage isRunning={isRunning} />
        <Answer isRunning={isRunning} />
      </li>
    </EntryProvider>
  );
});

function UserMessage({ isRunning }: { isRunning: boolean }) {
  const words = useWords();
  const { conversation } = useChat();
  const entry = useEntry();
  const head = useHead(entry.store);
  const [draft, setDraft] = useState<string>();
  const given: readonly (UserPart | DraftPart)[] = head.input.length === 0 ? (entry.draft ?? []) : head.input;
  const text = wordsIn(given);
  if (draft !== undefined) {
    const submit = (event: FormEvent): void => {
      event.preventDefault();
      if (draft.trim() === "") return;
      setDraft(undefined);
      void conversation.again(entry, [{ type: "text", text: draft }], mode.chosen()).catch(() => undefined);
    };
    return (
      <form onSubmit={submit} className="mb-6 ms-auto max-w-[80%]">
        <textarea
          // biome-ignore lint/a11y/noAutofocus: whoever presses Edit wants to type
          autoFocus
          dir="auto"
          aria-label={words.yourMessage}
          value={draft}
          rows={Math.min(12, draft.split("\n").length + 1)}
          onChange={(event) => setDraft(event.currentTarget.value)}
          className="field text-[15px]"
        />
        <div className="mt-2 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setDraft(undefined)}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary">
            {words.sendEdited}
          </button>
        </div>
      </form>
    );
  }
  return (
    <article aria-label={words.yourMessage} className="group/user mb-4">
      {head.input.length === 0 && entry.draft ? (
        <DraftParts parts={entry.draft} />
      ) : (
        <UserParts parts={head.input} />
      )}
      {/* Its height is reserved from the start: nothing below may move when the turn ends. */}
      {text !== "" && (
        <div className={`flex justify-end ${isRunning ? "invisible" : ""}`}>
          <IconButton label={words.edit} onClick={() => setDraft(text)}>
            <Pencil aria-hidden size={14} />
          </IconButton>
          <CopyButton text={() => text} />
        </div>
      )}
    </article>
  );
}

function Answer({ isRunning }: { isRunning: boolean }) {
  const words = useWords();
  const { store } = useEntry();
  const isEmpty = useOutline(store).length === 0;
  return (
    <article aria-label={words.assistantMessage} aria-busy={isRunning}>
      {/* Headings of cards and of the answer's text are below this level. */}
      <h2 className="sr-only">{words.assistantMessage}</h2>
      <Thread isRunning={isRunning} />
      {isRunning ? <div className="h-8" /> : !isEmpty && <Ending />}
    </article>
  );
}

/** The blocks of a message with their timeline. */
export function Thread({ isRunning }: { isRunning: boolean }) {
  const { store } = useEntry();
  const outline = useOutline(store);
  const rows = useRows(outline);
  // Without a card the timeline is hidden.
  const isBare = !outline.some(({ kind }) => kind === "tool_call" || kind === "error");
  return (
    <div className={`thread ${isRunning ? "live" : "settled"} ${isBare ? "bare" : ""}`}>
      {rows.map((row) =>
        row.kind === "block" ? (
          <BlockView key={row.at} at={row.at} />
        ) : (
          <Group key={`group-${row.calls[0]?.at}`} calls={row.calls} />
        ),
      )}
    </div>
  );
}

/**
 * Finished calls fold into a group when something new appears after them, never on their own: what is below would move while it is
 * being read.
 */
function useRows(outline: readonly BlockPosition[]): readonly Row[] {
  const { opened } = useEntry();
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new block is an occasion
  const foldable = useMemo(
    () => new Set(outline.flatMap(({ at, status }) => (status === "success" && !opened?.has(at) ? at : []))),
    [outline.length],
  );
  return rowsOf(outline, foldable);
}

/** Actions and figures of a finished answer. */
function Ending() {
  const words = useWords();
  const { conversation } = useChat();
  const entry = useEntry();
  const head = useHead(entry.store);
  const { entries, running } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const isLast = entries.at(-1) === entry && running === undefined;
  const speed = tokensPerSecond(head);
  const continueAnswer = (): void =>
    void conversation
      .send([{ type: "text", text: words.continuePrompt }], mode.chosen())
      .catch(() => undefined);
  const cut =
    head.status === "length"
      ? words.statusLength
      : head.status === "interrupted"
        ? words.statusInterrupted
        : undefined;
  return (
    <div className="ps-7.5">
      {cut && (
        <p className="mb-2 flex flex-wrap items-center gap-3 text-[13px] text-muted">
          {cut}
          {isLast && (
            <button type="button" className="button" onClick={continueAnswer}>
              {words.continue}
            </button>
          )}
        </p>
      )}
      <div className="flex flex-wrap items-center text-[12px] text-muted">
        <CopyButton text={() => textOf(entry)} />
        {running === undefined && (
          <IconButton
            label={words.regenerate}
            onClick={() => void conversation.again(entry, undefined, mode.chosen()).catch(() => undefined)}
          >
            <RotateCcw aria-hidden size={14} />
          </IconButton>
        )}
        <Rating />
        <Siblings entry={entry} />
        <span className="turn-figures">
          {head.stats?.first_content_ms !== undefined && (
            <span>{words.firstToken(duration(head.stats.first_content_ms))}</span>
          )}
          {speed !== undefined && <span>{words.perSecond(speed)}</span>}
          {head.stats?.wall_ms !== undefined && <span>{duration(head.stats.wall_ms)}</span>}
        </span>
      </div>
    </div>
  );
}

function Siblings({ entry }: { entry: Entry }) {
  const words = useWords();
  const { conversation } = useChat();
  const siblings = conversation.siblings(entry);
  const at = siblings.findIndex((node) => node.id === entry.turnId);
  if (siblings.length < 2 || at < 0) return null;
  const to = (next: number): void => {
    const node = siblings[next];
    if (node !== undefined) void conversation.switchTo(node.id);
  };
  return (
    <span className="flex items-center">
      <IconButton label={words.previousAnswer} disabled={at === 0} onClick={() => to(at - 1)}>
        <ChevronLeft aria-hidden size={14} />
      </IconButton>
      <span className="tabular-nums">{words.answerOf(at + 1, siblings.length)}</span>
      <IconButton label={words.nextAnswer} disabled={at === siblings.length - 1} onClick={() => to(at + 1)}>
        <ChevronRight aria-hidden size={14} />
      </IconButton>
    </span>
  );
}

/** All visible text of an answer. */
function textOf({ store }: Entry): string {
  const texts = store.outline().map(({ at }) => store.block(at));
  return texts
    .flatMap((block) => (block?.kind === "text" && block.text !== "" ? block.text : []))
    .join("\n\n");
}
