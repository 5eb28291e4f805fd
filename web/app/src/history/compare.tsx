import type { Message } from "@throughline/client";
import { ArrowLeft } from "lucide-react";
import { useMemo } from "react";
import { grouped } from "../i18n/en.ts";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";
import { Section } from "../shared/call-card/section.tsx";
import { callsOf, storyOf } from "../shared/charts/story.ts";
import { duration } from "../shared/format.ts";
import { Link } from "../shared/link.tsx";
import { Failure } from "../ui/failure.tsx";
import { turnAddressOf } from "./model/turn-filter.ts";
import { turnTone } from "./model/turns.ts";
import { inputOf, Shown, StoryTimeline, useMessage } from "./turn-detail.tsx";
import { useTurnEvents } from "./turn-events.ts";
import { type HistoryWords, turnStatusWord, useHistoryWords } from "./words.ts";

interface CompareProps {
  turns: readonly [string, string];
  /** Address without the comparison. */
  close: string;
}

/** Two turns side by side: differences are marked, and their times share an axis. */
export function Compare({ turns: [first, second], close }: CompareProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const one = useTurn(first);
  const other = useTurn(second);
  const failed = [one, other].find(({ error }) => error !== undefined);
  return (
    <section className="flex min-h-0 min-w-0 flex-1 flex-col">
      <header className="flex min-h-13 flex-none items-center gap-2 border-b border-line px-4 min-[720px]:px-6">
        <Link href={close} className="icon-button" aria-label={texts.back} title={texts.back}>
          <ArrowLeft aria-hidden size={18} />
        </Link>
        <h1 className="text-[15px] font-semibold">{texts.compareTwo}</h1>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="compare-view" tabIndex={0} aria-label={texts.compareTwo}>
        {failed && <Failure error={failed.error} again={failed.again} />}
        {one.known && other.known ? (
          <Both turns={[one.known, other.known]} />
        ) : (
          failed === undefined && <p role="status">{words.loading}</p>
        )}
      </section>
    </section>
  );
}

function useTurn(turnId: string) {
  const { events, error, again } = useTurnEvents(turnId);
  const message = useMessage(events);
  const known = useMemo(
    () => (events && message ? { turnId, events, message, story: storyOf(events) } : undefined),
    [turnId, events, message],
  );
  return { known, error, again };
}

type KnownTurn = NonNullable<ReturnType<typeof useTurn>["known"]>;

function Both({ turns }: { turns: readonly [KnownTurn, KnownTurn] }) {
  const texts = useHistoryWords();
  const whole = Math.max(...turns.map(({ story }) => story.whole));
  const [one, other] = turns;
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-5">
      <table className="compared">
        <caption className="sr-only">{texts.compareTwo}</caption>
        <thead>
          <tr>
            <td />
            {turns.map(({ turnId, message }, at) => (
              <th key={turnId} scope="col">
                <span className="pill">{"AB"[at]}</span>{" "}
                <Link href={turnAddressOf({ filter: {}, turn: turnId })} dir="auto">
                  {inputOf(message) || texts.noText}
                </Link>
              </th>
            ))}
            <th scope="col">{texts.difference}</th>
          </tr>
        </thead>
        <tbody>
          {FACTS.map(({ name, textOf, numberOf }) => {
            const values = turns.map(({ message }) => textOf(message, texts));
            // Different start times are no difference.
            const isSame = values[0] === values[1] || name === beginName;
            return (
              <tr key={name(texts)} data-differs={!isSame}>
                <th scope="row">{name(texts)}</th>
                {values.map((text, at) => (
                  <td key={at}>
                    {name === statusName ? (
                      <span className="pill" data-look={turnTone(turns[at]?.message.status ?? "running")}>
                        {text}
                      </span>
                    ) : (
                      text || "–"
                    )}
                  </td>
                ))}
                <td>
                  {name === beginName
                    ? ""
                    : isSame
                      ? "="
                      : differenceOf(numberOf?.(one.message), numberOf?.(other.message), texts)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      <h2 className="sr-only">{texts.stepsAndCalls}</h2>
      {turns.map((turn, at) => (
        <Section key={turn.turnId} title={`${"AB"[at]} · ${texts.stepsAndCalls}`}>
          <StoryTimeline message={turn.message} story={turn.story} whole={whole} />
        </Section>
      ))}
      <h2 className="sr-only">{texts.answerText}</h2>
      <div className="grid gap-5 min-[900px]:grid-cols-2">
        {turns.map(({ turnId, events }, at) => (
          <Section key={turnId} title={`${"AB"[at]} · ${texts.answerText}`}>
            <div className="travel-message">
              <Shown events={events} count={events.length} />
            </div>
          </Section>
        ))}
      </div>
    </div>
  );
}

interface Fact {
  name(texts: HistoryWords): string;
  textOf(message: Message, texts: HistoryWords): string;
  /** The comparable number of a fact. */
  numberOf?(message: Message): number | undefined;
}

const SHORT: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "medium" };

const statusName = (texts: HistoryWords): string => texts.status;
const beginName = (texts: HistoryWords): string => texts.when;
const count = (value: number | null | undefined): string => (value == null ? "" : grouped(value));
const time = (value: number | null | undefined): string => (value == null ? "" : duration(value));

const FACTS: readonly Fact[] = [
  { name: statusName, textOf: ({ status }, texts) => turnStatusWord(status ?? "running", texts) },
  {
    name: beginName,
    textOf: ({ started_at }) => new Date(started_at).toLocaleString(language.get(), SHORT),
  },
  { name: (texts) => texts.agent, textOf: ({ agent }) => agent },
  { name: (texts) => texts.model, textOf: ({ model }) => model },
  { name: (texts) => texts.mode, textOf: ({ mode }) => mode },
  {
    name: (texts) => texts.time,
    textOf: ({ stats }) => time(stats?.wall_ms),
    numberOf: ({ stats }) => stats?.wall_ms,
  },
  {
    name: (texts) => texts.firstToken,
    textOf: ({ stats }) => time(stats?.first_content_ms),
    numberOf: ({ stats }) => stats?.first_content_ms ?? undefined,
  },
  {
    name: (texts) => texts.tokensRead,
    textOf: ({ usage }) => count(usage.input_tokens),
    numberOf: ({ usage }) => usage.input_tokens ?? undefined,
  },
  {
    name: (texts) => texts.tokensWritten,
    textOf: ({ usage }) => count(usage.output_tokens),
    numberOf: ({ usage }) => usage.output_tokens ?? undefined,
  },
  { name: (texts) => texts.steps, textOf: ({ step }) => count(step), numberOf: ({ step }) => step },
  {
    name: (texts) => texts.calls,
    textOf: (message) => count(callsOf(message).size),
    numberOf: (message) => callsOf(message).size,
  },
];

/** Relative difference of the second number, `+25 %`. */
function differenceOf(one: number | undefined, other: number | undefined, texts: HistoryWords): string {
  if (one === undefined || other === undefined) return texts.differs;
  if (one === 0) return `+${grouped(other)}`;
  const share = Math.round(((other - one) / one) * 100);
  return `${share > 0 ? "+" : share < 0 ? "−" : "±"}${Math.abs(share)} %`;
}
