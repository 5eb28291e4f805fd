import { ApiError, absorb, type Event, emptyMessage, type Message } from "@throughline/client";
import { ArrowLeft, GitFork, ListFilter, X } from "lucide-react";
import { type ReactNode, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { Section } from "../shared/call-card/section.tsx";
import { callTone, statusWord } from "../shared/call-card/tone.ts";
import { callsOf, lengthOf, type StoryCall, type StoryStep, storyOf } from "../shared/charts/story.ts";
import { Timeline } from "../shared/charts/timeline.tsx";
import { duration } from "../shared/format.ts";
import { Link } from "../shared/link.tsx";
import { go } from "../shared/router.ts";
import { CopyButton } from "../ui/copy.tsx";
import { Failure } from "../ui/failure.tsx";
import { IconButton } from "../ui/icon-button.tsx";
import { later } from "../ui/later.tsx";
import { addressOf } from "./model/filter.ts";
import { type TurnFilter, withTurnPart } from "./model/turn-filter.ts";
import { turnTone } from "./model/turns.ts";
import { Scrubber } from "./scrubber.tsx";
import { FULL, tokensText } from "./texts.ts";
import { useTurnEvents } from "./turn-events.ts";
import { turnStatusWord, useHistoryWords } from "./words.ts";

/** The renderer of messages is loaded with the first one. */
export const Shown = later(async () => ({ default: (await import("../chat/answers.tsx")).Shown }));

interface TurnDetailProps {
  turnId: string;
  filter: TurnFilter;
  filterBy(filter: TurnFilter): void;
  /** Address without the details. */
  close: string;
}

/** Details of one turn, with its message at any moment. */
export function TurnDetail({ turnId, filter, filterBy, close }: TurnDetailProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const { events, isOver, error, again } = useTurnEvents(turnId);
  const message = useMessage(events);
  const container = useRef<HTMLElement>(null);
  useEffect(() => {
    // Details that cover the list get the focus.
    const list = container.current?.parentElement?.querySelector("[data-list]");
    if (list?.checkVisibility({ visibilityProperty: true }) === false) container.current?.focus();
  }, []);
  const isMissing = error instanceof ApiError && (error.status === 404 || error.status === 410);
  return (
    <section
      ref={container}
      data-detail
      tabIndex={-1}
      aria-label={texts.turnDetails}
      className="flex min-h-0 min-w-0 flex-col border-line bg-bg outline-none max-[999px]:absolute max-[999px]:inset-0 min-[1000px]:w-[46%] min-[1000px]:flex-none min-[1000px]:border-l"
    >
      <header className="flex min-h-13 flex-none items-center gap-2 border-b border-line px-4">
        <Link
          href={close}
          className="icon-button min-[1000px]:hidden"
          aria-label={texts.back}
          title={texts.back}
        >
          <ArrowLeft aria-hidden size={18} />
        </Link>
        <h2 dir="auto" className="min-w-0 flex-1 truncate text-[14.5px] font-semibold">
          {message && (inputOf(message) || texts.noText)}
        </h2>
        <Link
          href={close}
          className="icon-button max-[999px]:hidden"
          aria-label={words.close}
          title={words.close}
        >
          <X aria-hidden size={17} />
        </Link>
      </header>
      <div className="min-h-0 flex-1 overflow-auto overscroll-contain">
        {events && message && (
          <div className="grid grid-cols-[minmax(0,1fr)] gap-4 p-4">
            <Facts message={message} />
            <Moments turnId={turnId} events={events} message={message} isOver={isOver} />
            <TurnIds turnId={turnId} message={message} filter={filter} filterBy={filterBy} />
          </div>
        )}
        {error !== undefined && !isMissing && (
          <div className="p-4">
            <Failure error={error} again={again} />
          </div>
        )}
        {events === undefined && (error === undefined || isMissing) && (
          <p role="status" className="p-4 text-[13px] text-muted">
            {isMissing ? texts.turnNotFound : words.loading}
          </p>
        )}
      </div>
    </section>
  );
}

/** The message after these events, by the client's own fold. */
export function useMessage(events: readonly Event[] | undefined): Message | undefined {
  return useMemo(() => {
    if (events === undefined) return undefined;
    const message = emptyMessage();
    for (const event of events) absorb(message, event);
    return message;
  }, [events]);
}

export function inputOf({ input }: Pick<Message, "input">): string {
  return input.flatMap((part) => (part.type === "text" ? part.text : [])).join(" ");
}

function Facts({ message }: { message: Message }) {
  const texts = useHistoryWords();
  const isAsking = message.blocks.some(
    (block) => block.kind === "tool_call" && block.status === "awaiting_approval",
  );
  const status = message.status ?? (isAsking ? "asks" : "running");
  const { usage, stats } = message;
  const facts: (readonly [string, ReactNode])[] = [
    [texts.agent, message.agent],
    [texts.model, message.model],
    [texts.time, stats?.wall_ms != null && duration(stats.wall_ms)],
    [texts.firstToken, stats?.first_content_ms != null && duration(stats.first_content_ms)],
    [texts.tokens, tokensText(usage.input_tokens, usage.output_tokens)],
    [texts.calls, String(callsOf(message).size)],
  ];
  return (
    <div className="grid gap-2">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="pill" data-look={turnTone(status)}>
          {turnStatusWord(status, texts)}
        </span>
        <time className="text-[12px] text-muted" dateTime={new Date(message.started_at).toISOString()}>
          {new Date(message.started_at).toLocaleString(language.get(), FULL)}
        </time>
      </p>
      <dl className="turn-facts">
        {facts
          .filter(([, value]) => value)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {message.error && (
        <p className="rounded-control bg-error-soft px-3 py-2 text-[13px]">
          <code className="font-semibold text-error">{message.error.code}</code> {message.error.what}
        </p>
      )}
    </div>
  );
}

interface MomentsProps {
  turnId: string;
  events: readonly Event[];
  message: Message;
  isOver: boolean;
}

/** Interval at which the bars of a running turn grow. */
const GROWS_MS = 1_000;

/** Current time while something runs, else `undefined`. */
function useNow(isRunning: boolean): number | undefined {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => setNow(Date.now()), GROWS_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return isRunning ? now : undefined;
}

/** Slider over the time of the turn, with the message at that moment. */
function Moments({ turnId, events, message, isOver }: MomentsProps) {
  const texts = useHistoryWords();
  const client = useClient();
  const [chosen, choose] = useState<number>();
  const [failure, setFailure] = useState<unknown>();
  const then = useRef<HTMLDivElement>(null);
  const now = useNow(!isOver);
  const story = useMemo(() => storyOf(events, now), [events, now]);
  // Stays at the end, also while more events come, until the user moves back.
  const count = Math.min(chosen ?? events.length, events.length);
  const drawn = useDeferredValue(count);
  const begin = events[0]?.timestamp ?? 0;
  const event = events[count - 1];
  const { conversation_id } = message;
  const fork = async (): Promise<void> => {
    if (conversation_id == null || event === undefined) return;
    try {
      const { id } = await client.call("POST /v1/conversations/{conversation_id}/fork", {
        path: { conversation_id },
        body: { turn_id: turnId, seq: event.seq },
      });
      go(`/c/${id}`);
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <>
      <Section title={texts.stepsAndCalls}>
        <StoryTimeline
          message={message}
          story={story}
          answer={() => {
            choose(undefined);
            then.current?.scrollIntoView({ block: "start" });
          }}
        >
          <Scrubber
            events={events}
            whole={story.whole}
            count={count}
            move={(next) => choose(next >= events.length ? undefined : next)}
          />
        </StoryTimeline>
      </Section>
      <div ref={then}>
        <Section
          title={texts.messageThen}
          side={
            conversation_id != null && (
              <button type="button" className="button" onClick={() => void fork()}>
                <GitFork aria-hidden size={14} />
                {texts.forkHere}
              </button>
            )
          }
        >
          <p className="mb-2 text-[12px] text-muted tabular-nums">
            {texts.atMoment(duration((event?.timestamp ?? begin) - begin), duration(story.whole))}
            {event && (
              <>
                {" · "}
                <time dateTime={new Date(event.timestamp).toISOString()}>
                  {new Date(event.timestamp).toLocaleTimeString(language.get())}
                </time>
                {" · "}
                <code>{event.type}</code>
              </>
            )}
          </p>
          {failure !== undefined && <Failure error={failure} />}
          <div className="travel-message" data-count={drawn}>
            <Shown
              events={events}
              count={drawn}
              turnId={turnId}
              isRunning={drawn < events.length || !isOver}
            />
          </div>
        </Section>
      </div>
    </>
  );
}

interface StoryTimelineProps {
  message: Message;
  story: ReturnType<typeof storyOf>;
  whole?: number;
  /** Scrolls to the open approval. */
  answer?(): void;
  children?: ReactNode;
}

/** Steps of a turn and their calls, with their outcomes. */
export function StoryTimeline({ message, story, whole = story.whole, answer, children }: StoryTimelineProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const calls = useMemo(() => callsOf(message), [message]);
  const ofStep = ({ inputTokens, outputTokens, finish, from, to }: StoryStep): ReactNode => {
    const tokens = tokensText(inputTokens, outputTokens);
    const facts = [
      tokens && texts.tokensOf(tokens),
      finish === undefined ? texts.writing : duration(to - from),
      finish !== undefined && finish !== "stop" && finish !== "tool_calls" && finish,
    ];
    return <small>{facts.filter(Boolean).join(" · ")}</small>;
  };
  const ofCall = ({ toolId, stretches }: StoryCall): ReactNode => {
    const call = calls.get(toolId);
    if (call === undefined) return null;
    const asks = call.status === "awaiting_approval";
    return (
      <small>
        <span className="pill" data-look={callTone(call)}>
          {statusWord(call, words)}
        </span>{" "}
        {stretches.length > 0 && duration(lengthOf(stretches))}
        {asks && answer && (
          <button type="button" className="text-accent underline" onClick={answer}>
            {texts.answer}
          </button>
        )}
      </small>
    );
  };
  return (
    <Timeline
      story={story}
      whole={whole}
      ofStep={ofStep}
      ofCall={ofCall}
      nameOfCall={({ toolId, name, title }) => (
        <Link href={addressOf({ filter: {}, call: toolId })} title={name}>
          {title ?? <code>{name}</code>}
        </Link>
      )}
    >
      {children}
    </Timeline>
  );
}

interface TurnIdsProps {
  turnId: string;
  message: Message;
  filter: TurnFilter;
  filterBy(filter: TurnFilter): void;
}

/** Ids of the turn and its conversation, with links. */
function TurnIds({ turnId, message: { conversation_id }, filter, filterBy }: TurnIdsProps) {
  const texts = useHistoryWords();
  return (
    <Section title={texts.ids}>
      <dl className="text-[12.5px]">
        <div className="flex items-center gap-2">
          <dt className="w-22 flex-none text-muted">{texts.idTurn}</dt>
          <dd className="min-w-0 flex-1 truncate font-mono text-[12px]" title={turnId}>
            {turnId}
          </dd>
          <dd className="flex">
            <CopyButton text={() => turnId} label={texts.copyId(texts.idTurn)} />
          </dd>
        </div>
        {conversation_id != null && (
          <div className="flex items-center gap-2">
            <dt className="w-22 flex-none text-muted">{texts.idConversation}</dt>
            <dd className="min-w-0 flex-1 truncate font-mono text-[12px]" title={conversation_id}>
              {conversation_id}
            </dd>
            <dd className="flex">
              <IconButton
                label={texts.onlyThis(texts.idConversation)}
                onClick={() => filterBy(withTurnPart(filter, "conversation_id", conversation_id))}
              >
                <ListFilter aria-hidden size={15} />
              </IconButton>
              <CopyButton text={() => conversation_id} label={texts.copyId(texts.idConversation)} />
            </dd>
          </div>
        )}
      </dl>
      <p className="mt-2 flex flex-wrap gap-2">
        {conversation_id != null && (
          <Link href={`/c/${conversation_id}#turn=${turnId}`} className="button">
            {texts.toConversation}
          </Link>
        )}
        <Link href={addressOf({ filter: { turn_id: turnId } })} className="button">
          {texts.callsOfTurn}
        </Link>
      </p>
    </Section>
  );
}
