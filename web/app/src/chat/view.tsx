import type { Throughline } from "@throughline/client";
import { ArrowDown } from "lucide-react";
import {
  type DragEvent,
  lazy,
  type RefObject,
  Suspense,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { AvatarBeside, AvatarBubble } from "../avatar/avatar.tsx";
import { Avatar } from "../avatar/model.ts";
import { useWords } from "../i18n/use.ts";
import { wordsOf } from "../i18n/words.ts";
import { answering, avatarShown, language } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { go, onPath, path } from "../shell/router.ts";
import { failed } from "../ui/failed.ts";
import { Composer } from "./composer/composer.tsx";
import { mode } from "./composer/mode.ts";
import { useOffer } from "./composer/offer.ts";
import { Pictures } from "./composer/pictures.ts";
import { ChatProvider } from "./context.tsx";
import { FirstRun } from "./first-run.tsx";
import { Header } from "./header.tsx";
import { Keys, useKeys } from "./keys.tsx";
import { Announcements } from "./model/announcements.ts";
import { Attention } from "./model/attention.ts";
import { ConversationStore } from "./model/conversation.ts";
import { Frames } from "./model/frames.ts";
import { ConversationList } from "./model/list.ts";
import { QuestionBar, useTabTitle } from "./questions.tsx";
import { Announcer } from "./thread/announcer.tsx";
import { StickToEnd } from "./thread/scroll.ts";
import { StatusLine } from "./thread/status-line.tsx";
import { TurnView } from "./thread/turn.tsx";

// The tester draws with it what was recorded; a file of its own would cut this one in two.
export { Shown } from "./thread/shown.tsx";

/** Nobody can have opened it yet: it is fetched when the conversation stands. */
const Drawer = lazy(() => import("./conversations/drawer.tsx"));

/** The conversation that the address names: `/c/ID`; at `/` a new one. */
function conversationIn(path: string): string | undefined {
  return /^\/c\/([^/]+)$/.exec(path)?.[1];
}

export default function ChatView() {
  const words = useWords();
  const client = useClient();
  const here = useSyncExternalStore(onPath, path);
  const id = conversationIn(here);
  const { conversation, attention, avatar, list, pictures, announcements } = useModel(client);
  const state = useSyncExternalStore(conversation.subscribe, conversation.get);
  const [isListOpen, setListOpen] = useState(false);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const { stick, isStuck } = useStick(scroller, content);
  const offer = useOffer();

  useEffect(() => {
    void conversation.open(id).then(() => stick.current?.toEnd());
  }, [conversation, id, stick]);
  const isNew = state.phase === "new";
  useEffect(() => stick.current?.rest(isNew), [isNew, stick]);
  useEffect(() => {
    const seen = (): void => {
      if (document.visibilityState === "visible") void conversation.refresh().catch(() => undefined);
    };
    document.addEventListener("visibilitychange", seen);
    return () => document.removeEventListener("visibilitychange", seen);
  }, [conversation]);
  const hasAvatar = useSyncExternalStore(avatarShown.subscribe, avatarShown.get) === "shown";
  useEffect(() => (hasAvatar ? avatar.enter(conversation) : undefined), [avatar, conversation, hasAvatar]);
  useTabTitle(attention, state.title);
  const keys = useKeys({ conversation, attention, field });

  const chat = useMemo(
    () => ({ conversation, attention, avatar, hold: () => stick.current?.hold() }),
    [conversation, attention, avatar, stick],
  );
  const bubble = hasAvatar && <AvatarBubble avatar={avatar} />;
  const ask = (prompt: string): void => {
    void conversation.send([{ type: "text", text: prompt }], mode.chosen()).catch(() => undefined);
  };
  const drop = (event: DragEvent): void => {
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    void pictures.add(event.dataTransfer.files);
  };
  return (
    <ChatProvider value={chat}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: pictures can be picked and pasted as well */}
      <div className="flex min-h-0 flex-1" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <Header openList={() => setListOpen(true)} />
          <div
            ref={scroller}
            className="min-h-0 flex-1 overflow-auto overscroll-contain bg-bg px-4 min-[720px]:px-6"
          >
            <div ref={content} className="mx-auto max-w-190 pt-6.5 pb-2.5 max-[1099px]:pb-26">
              {state.phase === "loading" && <p className="text-muted">{words.loading}</p>}
              {state.phase === "missing" && <p>{words.missing}</p>}
              {isNew && (
                <FirstRun model={offer?.model} ask={ask}>
                  {bubble}
                </FirstRun>
              )}
              {state.before !== undefined && (
                <button
                  type="button"
                  className="button quiet mx-auto mb-4 flex w-fit"
                  onClick={() => void conversation.loadOlder()}
                >
                  {words.olderTurns}
                </button>
              )}
              <ol aria-label={words.chat}>
                {state.entries.map((entry) => (
                  <TurnView key={entry.key} entry={entry} isRunning={entry === state.running} />
                ))}
              </ol>
            </div>
          </div>
          <div className="relative flex-none px-4 pt-1.5 pb-3 min-[720px]:px-6 min-[720px]:pb-4.5">
            {!isStuck && <ToEnd isRunning={state.running !== undefined} go={() => stick.current?.toEnd()} />}
            {!isNew && bubble}
            <Failure failure={state.failure} dismiss={conversation.dismissFailure} />
            <QuestionBar />
            <StatusLine />
            <Composer pictures={pictures} offer={offer} field={field} onSaid={() => stick.current?.toEnd()} />
          </div>
        </div>
        {hasAvatar && <AvatarBeside avatar={avatar} />}
      </div>
      <Announcer from={announcements} />
      <Suspense>
        <Drawer list={list} current={state.id} isOpen={isListOpen} close={() => setListOpen(false)} />
      </Suspense>
      <Keys dialog={keys} />
    </ChatProvider>
  );
}

function useModel(client: Throughline) {
  return useMemo(() => {
    const announcements = new Announcements(() => wordsOf(language.get()));
    const list = new ConversationList(client);
    const avatar = new Avatar(client);
    const frames = new Frames(client);
    const conversation = new ConversationStore(client, {
      listeners: (turnId) => [announcements, avatar.of(turnId), frames],
      onBegun: (id) => go(`/c/${id}`, "replace"),
      onEnd: () => {
        announcements.end();
        frames.report();
      },
      agent: answering.get,
    });
    const [attention, pictures] = [new Attention(), new Pictures(client)];
    return { conversation, avatar, list, announcements, attention, pictures };
  }, [client]);
}

function useStick(scroller: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>) {
  const stick = useRef<StickToEnd>(undefined);
  const [isStuck, setStuck] = useState(true);
  useEffect(() => {
    if (scroller.current === null || content.current === null) return undefined;
    const made = new StickToEnd(scroller.current, content.current, setStuck);
    stick.current = made;
    return () => made.stop();
  }, [scroller, content]);
  return { stick, isStuck };
}

/** Back to where text comes. */
function ToEnd({ isRunning, go }: { isRunning: boolean; go(): void }) {
  const words = useWords();
  return (
    <button
      type="button"
      onClick={go}
      aria-label={isRunning ? undefined : words.toEnd}
      className="absolute -top-10 left-1/2 flex min-h-8 -translate-x-1/2 items-center gap-1.5 rounded-full border border-line-strong bg-surface px-2 text-[12.5px] shadow-card"
    >
      <ArrowDown aria-hidden size={15} />
      {isRunning && <span className="pr-1">{words.newBelow}</span>}
    </button>
  );
}

/** What did not work. */
function Failure({ failure, dismiss }: { failure: unknown; dismiss(): void }) {
  const words = useWords();
  if (failure === undefined) return null;
  return (
    <div
      role="alert"
      className="mx-auto mb-2 flex max-w-190 items-start gap-3 rounded-control bg-error-soft px-3 py-2 text-[13px] text-error"
    >
      <p className="flex-1 whitespace-pre-wrap">{failed(failure, words)}</p>
      <button type="button" className="underline" onClick={dismiss}>
        {words.close}
      </button>
    </div>
  );
}
