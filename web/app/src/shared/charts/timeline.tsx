import type { ReactNode } from "react";
import { type HistoryWords, useHistoryWords } from "../../history/words.ts";
import { duration } from "../format.ts";
import { Axis } from "./axis.tsx";
import type { Story, StoryCall, StoryStep, Stretch, StretchKind } from "./story.ts";
import { lengthOf } from "./story.ts";

interface TimelineProps {
  story: Story;
  /** Length of the axis in milliseconds: with several turns, that of the longest. */
  whole: number;
  /** Details and link of a step or a call. */
  ofStep?(step: StoryStep): ReactNode;
  ofCall?(call: StoryCall): ReactNode;
  nameOfCall?(call: StoryCall): ReactNode;
  /** Overlay on the bars. */
  children?: ReactNode;
}

/** Steps and their calls as a tree, each with a bar on a shared time axis. */
export function Timeline({ story, whole, ofStep, ofCall, nameOfCall, children }: TimelineProps) {
  const texts = useHistoryWords();
  const kinds = kindsIn(story);
  return (
    <div className="timeline-box">
      <div className="timeline">
        <div className="timeline-row">
          <span className="timeline-label" />
          <Axis whole={Math.max(whole, 1)} />
        </div>
        <ol aria-label={texts.stepsAndCalls}>
          {story.steps.map((step) => (
            <li key={step.step}>
              <div className="timeline-row">
                <p className="timeline-label">
                  <b>{texts.step(step.step)}</b> <bdi className="text-muted">{step.model}</bdi>
                  {ofStep?.(step)}
                </p>
                <Bar stretches={step.stretches} whole={whole} texts={texts} />
              </div>
              <ol>
                {step.calls.map((call) => (
                  <li key={call.toolId} className="timeline-row" data-call={call.toolId}>
                    <p className="timeline-label">
                      {nameOfCall?.(call) ?? <code>{call.name}</code>}
                      {ofCall?.(call)}
                    </p>
                    <Bar stretches={call.stretches} whole={whole} texts={texts} />
                  </li>
                ))}
              </ol>
            </li>
          ))}
        </ol>
        {children}
      </div>
      <ul className="legend" aria-hidden="true">
        {kinds.map((kind) => (
          <li key={kind}>
            <i className="kind" data-kind={kind} />
            {texts.stretch[kind]}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Minimum share of the axis, so that short bars stay visible. */
const SHARE_MIN = 0.006;

function Bar({
  stretches,
  whole,
  texts,
}: {
  stretches: readonly Stretch[];
  whole: number;
  texts: HistoryWords;
}) {
  const share = (ms: number): string => `${(ms / Math.max(whole, 1)) * 100}%`;
  const label = stretches
    .map(({ kind, from, to }) => `${texts.stretch[kind]} ${duration(to - from)}`)
    .join(", ");
  return (
    <span className="timeline-bar" title={label}>
      <span className="sr-only">{stretches.length === 0 ? "" : duration(lengthOf(stretches))}</span>
      <svg aria-hidden="true" width="100%" height="10">
        <rect className="track" width="100%" height="10" rx="4" />
        {stretches.map(({ kind, from, to }, at) => (
          <rect
            key={at}
            data-kind={kind}
            x={share(Math.min(from, whole * (1 - SHARE_MIN)))}
            width={share(Math.max(to - from, whole * SHARE_MIN))}
            height="10"
            rx="3"
          />
        ))}
      </svg>
    </span>
  );
}

const ORDER: readonly StretchKind[] = [
  "waiting",
  "model",
  "retry",
  "approval",
  "reading",
  "writing",
  "acting",
];

function kindsIn({ steps }: Story): readonly StretchKind[] {
  const all = steps.flatMap((step) => [step.stretches, ...step.calls.map((call) => call.stretches)]).flat();
  const found = new Set(all.map(({ kind }) => kind));
  return ORDER.filter((kind) => found.has(kind));
}
