import type { Throughline } from "@throughline/client";
import { ArrowDown } from "lucide-react";
import {
  type DragEvent,
  type RefObject,
  useEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { AvatarBubble, AvatarPanel, useIsWide } from "../avatar/avatar.tsx";
import { Avatar } from "../avatar/model.ts";
import { useWords } from "../i18n/use.ts";
import { wordsOf } from "../i18n/words.ts";
import { type Followed, Notices } from "../notices/notices.ts";
import { notifierOf } from "../notices/show.ts";
import { answering, avatarShown, conversationsShown, language, noticesWanted } from "../preferences.ts";
import { useClient, useSession } from "../session/context.tsx";
import { go, hash, onPath, path } from "../shared/router.ts";
import { tab } from "../shared/tab.ts";
import { failed } from "../ui/failed.ts";
import { useLateFocus } from "../ui/late-focus.ts";
import { later } from "../ui/later.tsx";
import { soundsOf } from "../voice/live.ts";
import { Attachments } from "./composer/attachments.ts";
import { Composer } from "./composer/composer.tsx";
import { mode, model } from "./composer/mode.ts";
import { useOffer } from "./composer/offer.ts";
import { ChatProvider } from "./context.tsx";
import { temporary } from "./conversations/temporary.ts";
import { Examples, Welcome } from "./first/first-run.tsx";
import { Header } from "./header.tsx";
import { useKeys } from "./keys.tsx";
import { Announcements } from "./model/announcements.ts";
import { ConversationStore } from "./model/conversation.ts";
import { Frames } from "./model/frames.ts";
import { OpenApprovals } from "./model/open-approvals.ts";
import { QuestionBar, useTabTitle } from "./questions.tsx";
import { Announcer } from "./thread/announcer.tsx";
import { StickToEnd } from "./thread/scroll.ts";
import { StatusLine } from "./thread/status-line.tsx";

/** Loaded together with the chat: a conversation waits for its messages anyway. */
const Answers = later(() => import("./answers.tsx"));
Answers.ask();
/** Loaded after the conversation, since it cannot be open before. */
const Keys = later(() => import("./keys-list.tsx"), "nowhere");
const Sidebar = later(() => import("./conversations/sidebar.tsx"));
const TemporaryNotice = later(() => import("./conversations/notice.tsx"));

/** Id of the conversation in the address `/c/ID`; `undefined`: a new one. */
function conversationIn(path: string): string | undefined {
  return /^\/c\/([^/]+)$/.exec(path)?.[1];
}

/** Id of the turn in the hash of the address. */
function turnIn(hash: string): string | undefined {
  return /^#turn=(\w+)$/.exec(hash)?.[1];
}

export default function ChatView() {
  const words = useWords();
  const client = useClient();
  const here = useSyncExternalStore(onPath, path);
  const id = conversationIn(here);
  const turnId = turnIn(useSyncExternalStore(onPath, hash));
  const { conversation, openApprovals, avatar, attachments, announcements } = useModel(client);
  const state = useSyncExternalStore(conversation.subscribe, conversation.get);
  const [isListOpen, setListOpen] = useState(false);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const { stick, isStuck } = useStick(scroller, content);
  const offer = useOffer(state.running?.turnId);

  useEffect(() => {
    const isHere = conversation.get().id === id && turnId === undefined;
    void (isHere ? conversation.refresh() : conversation.open(id, turnId))
      .catch(() => undefined)
      .then(() => turnId === undefined && stick.current?.toEnd());
  }, [conversation, id, turnId, stick]);
  useTarget(
    content,
    state.target === undefined ? -1 : state.entries.findIndex((e) => e.turnId === state.target),
  );
  const isNew = state.phase === "new";
  const isTemporary = useSyncExternalStore(temporary.subscribe, temporary.get);
  const isWide = useIsWide();
  const isListShown = useSyncExternalStore(conversationsShown.subscribe, conversationsShown.get) === "shown";
  const search = useLateFocus();
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (isWide) setListOpen(false);
  }, [isWide]);
  const showList = (): void => {
    conversationsShown.set("shown");
    search.focus();
  };
  const hideList = (): void => {
    conversationsShown.set("hidden");
    opener.current?.focus();
  };
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
  useTabTitle(openApprovals, state.title);
  useQuestion(openApprovals);
  const keys = useKeys({ conversation, openApprovals, field });

  const chat = useMemo(
    () => ({ conversation, openApprovals, avatar, hold: () => stick.current?.hold() }),
    [conversation, openApprovals, avatar, stick],
  );
  const bubble = hasAvatar && <AvatarBubble avatar={avatar} />;
  const ask = (prompt: string): void => {
    void conversation.send([{ type: "text", text: prompt }], mode.chosen()).catch(() => undefined);
  };
  const drop = useDrop((files) => void attachments.add(files));
  return (
    <ChatProvider value={chat}>
      <div className="relative flex min-h-0 flex-1" {...drop.events}>
        {drop.isOver && <p className="drop-here">{words.dropHere}</p>}
        {/* Reserves the space, so that nothing moves when it loads. */}
        <div className={isListShown ? "conversations-place" : undefined}>
          <Sidebar
            missed={isWide && isListShown ? "inline" : isListOpen ? "above" : "nowhere"}
            conversation={conversation}
            search={search}
            isOpen={isListOpen}
            close={() => (isWide ? hideList() : setListOpen(false))}
          />
        </div>
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          <Header
            offer={offer}
            isListShown={isWide && isListShown}
            openList={() => (isWide ? showList() : setListOpen(true))}
            opener={opener}
          />
          {(state.isTemporary || (isNew && isTemporary)) && <TemporaryNotice id={state.id} />}
          <div className={isNew ? "first-run" : "flex min-h-0 flex-1 flex-col"}>
            <div
              ref={scroller}
              className={`bg-bg px-4 min-[720px]:px-6 ${isNew ? "flex-none" : "min-h-0 flex-1 overflow-auto overscroll-contain"}`}
            >
              <div
                ref={content}
                className={`mx-auto max-w-190 ${isNew ? "" : "pt-6.5 pb-2.5 max-[1099px]:pb-26"}`}
              >
                {state.phase === "loading" && <p className="text-muted">{words.loading}</p>}
                {state.phase === "missing" && <p>{words.missing}</p>}
                {isNew && <Welcome>{bubble}</Welcome>}
                {state.before !== undefined && (
                  <button
                    type="button"
                    className="button quiet mx-auto mb-4 flex w-fit"
                    onClick={() => void conversation.loadOlder()}
                  >
                    {words.olderTurns}
                  </button>
                )}
                <Answers />
                {state.after !== undefined && (
                  <button
                    type="button"
                    className="button quiet mx-auto mb-4 flex w-fit"
                    onClick={() => void conversation.loadNewer()}
                  >
                    {words.newerTurns}
                  </button>
                )}
              </div>
            </div>
            <div
              className="relative flex-none px-4 pt-1.5 pb-3 min-[720px]:px-6 min-[720px]:pb-4.5"
              onWheel={(event) => stick.current?.turn(event)}
            >
              {!isStuck && (
                <ToEnd isRunning={state.running !== undefined} go={() => stick.current?.toEnd()} />
              )}
              {!isNew && bubble}
              <Failure failure={state.failure} dismiss={conversation.dismissFailure} />
              <QuestionBar />
              <StatusLine />
              <Composer
                attachments={attachments}
                offer={offer}
                field={field}
                onSent={() => stick.current?.toEnd()}
              />
            </div>
            {isNew && <Examples offer={offer} ask={ask} />}
          </div>
        </div>
        {hasAvatar && <AvatarPanel avatar={avatar} />}
      </div>
      <Announcer from={announcements} />
      <Keys dialog={keys} />
    </ChatProvider>
  );
}

/** Drafts and queued messages survive a visit of another view. */
const models = new WeakMap<Throughline, ReturnType<typeof modelOf>>();

function useModel(client: Throughline) {
  const session = useSession();
  return useMemo(() => {
    const isSignedIn = (): boolean => {
      const state = session?.get();
      return state?.phase === "in" && state.client === client;
    };
    const model = models.get(client) ?? modelOf(client, isSignedIn);
    models.set(client, model);
    return model;
  }, [client, session]);
}

function modelOf(client: Throughline, isSignedIn: () => boolean) {
  const announcements = new Announcements(() => wordsOf(language.get()));
  const avatar = new Avatar(client);
  const frames = new Frames(client);
  const notices = new Notices(client, {
    notifier: notifierOf(go),
    words: () => wordsOf(language.get()),
    isWanted: () => noticesWanted.get() === "on",
    isHidden: () => document.hidden,
    isSignedIn,
    onUnseen: (count) => tab.setUnseen(count),
  });
  document.addEventListener("visibilitychange", () => document.hidden || notices.seen());
  const followed = (turnId: string): Followed => {
    const { id, title } = conversation.get();
    return { turnId, conversationId: id, title };
  };
  const conversation = new ConversationStore(client, {
    listeners: (turnId) => [
      announcements,
      avatar.of(turnId),
      soundsOf(turnId),
      frames,
      notices.of(followed(turnId)),
    ],
    // A reader who went elsewhere in between stays there.
    onBegun: (id) => {
      temporary.set(false);
      if (path() === "/") go(`/c/${id}`, "replace");
    },
    onEnd: ({ turnId, store }) => {
      announcements.end();
      frames.report();
      if (turnId !== undefined) notices.end(followed(turnId), store.message());
    },
    onLeft: (turn) => notices.leave(turn),
    agent: answering.get,
    model: model.get,
    isTemporary: temporary.get,
  });
  const [openApprovals, attachments] = [new OpenApprovals(), new Attachments(client)];
  return { conversation, avatar, announcements, openApprovals, attachments };
}

/** Drag and drop of files onto the chat. */
function useDrop(take: (files: FileList) => void) {
  const [isOver, setOver] = useState(false);
  const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer.types.includes("Files");
  const events = {
    onDragOver(event: DragEvent) {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave(event: DragEvent) {
      if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
    },
    onDrop(event: DragEvent) {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      take(event.dataTransfer.files);
    },
  };
  return { isOver, events };
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

/** Scrolls to the approval of a notification, once it is loaded. */
function useQuestion(openApprovals: OpenApprovals): void {
  const isWanted = useSyncExternalStore(onPath, hash) === "#question";
  const pending = useSyncExternalStore(openApprovals.subscribe, openApprovals.get);
  useEffect(() => {
    if (!isWanted || pending.length === 0) return;
    openApprovals.target()?.show();
    // Only once, not when the user returns.
    go(path(), "replace");
  }, [isWanted, pending, openApprovals]);
}

/** Scrolls to the linked turn, once it is loaded. */
function useTarget(content: RefObject<HTMLElement | null>, at: number): void {
  useEffect(() => {
    if (at < 0) return;
    const turn = content.current?.querySelectorAll(":scope > ol > li")[at];
    turn?.scrollIntoView({ block: "start" });
    turn?.animate({ backgroundColor: ["var(--accent-soft)", "transparent"] }, 2_000);
  }, [content, at]);
}

/** Button to the end of the thread. */
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

/** Error message below the thread. */
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
