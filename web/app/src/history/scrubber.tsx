import type { Event } from "@throughline/client";
import { type KeyboardEvent, type PointerEvent, useRef } from "react";
import { countUntil } from "../shared/charts/moments.ts";
import { duration } from "../shared/format.ts";
import { useHistoryWords } from "./words.ts";

interface ScrubberProps {
  events: readonly Event[];
  whole: number;
  /** Number of events up to the moment. */
  count: number;
  move(count: number): void;
}

/** Step of the page keys, as a share of the turn. */
const LEAP = 0.1;

/** Slider over the bars of a turn: dragged, or moved from event to event by keyboard. */
export function Scrubber({ events, whole, count, move }: ScrubberProps) {
  const texts = useHistoryWords();
  const track = useRef<HTMLDivElement>(null);
  const begin = events[0]?.timestamp ?? 0;
  // In a running turn, the end is now.
  const at = count >= events.length ? whole : (events[count - 1]?.timestamp ?? begin) - begin;
  const to = (ms: number): void => move(countUntil(events, Math.max(0, Math.min(whole, ms))));
  const drag = ({ clientX }: PointerEvent): void => {
    const box = track.current?.getBoundingClientRect();
    if (box !== undefined && box.width > 0) to(((clientX - box.left) / box.width) * whole);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const within = (next: number): number => Math.max(1, Math.min(events.length, next));
    const steps: Record<string, () => void> = {
      ArrowRight: () => move(within(count + 1)),
      ArrowUp: () => move(within(count + 1)),
      ArrowLeft: () => move(within(count - 1)),
      ArrowDown: () => move(within(count - 1)),
      PageUp: () => to(at + whole * LEAP),
      PageDown: () => to(at - whole * LEAP),
      Home: () => move(1),
      End: () => move(events.length),
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    step();
  };
  return (
    <div
      ref={track}
      role="slider"
      tabIndex={0}
      className="scrubber"
      aria-label={texts.whichMoment}
      aria-valuemin={0}
      aria-valuemax={whole}
      aria-valuenow={at}
      aria-valuetext={texts.atMoment(duration(at), duration(whole))}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        drag(event);
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) drag(event);
      }}
    >
      <i style={{ left: `${whole > 0 ? (at / whole) * 100 : 100}%` }} />
    </div>
  );
}
