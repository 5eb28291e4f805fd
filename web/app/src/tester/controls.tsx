import { Pause, Play, StepForward } from "lucide-react";
import type { ReactNode } from "react";
import type { Playing } from "./play.ts";
import { useTesterWords } from "./words.ts";

interface ControlsProps {
  playing: Playing;
  perSecond: number;
  setPerSecond(perSecond: number): void;
  isOver: boolean;
  /** Text about how much has arrived. */
  text: string;
  /** Further controls. */
  children?: ReactNode;
}

/** Controls for the playback of a stream. */
export function Controls({ playing, perSecond, setPerSecond, isOver, text, children }: ControlsProps) {
  const words = useTesterWords();
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-[12.5px] text-muted">
      <div className="flex gap-2">
        <button type="button" className="button" onClick={playing.isRunning ? playing.pause : playing.resume}>
          {playing.isRunning ? <Pause aria-hidden size={13} /> : <Play aria-hidden size={13} />}
          {playing.isRunning ? words.pause : words.resume}
        </button>
        <button type="button" className="button" disabled={isOver} onClick={playing.step}>
          <StepForward aria-hidden size={13} />
          {words.stepOnce}
        </button>
      </div>
      {children}
      <Slider
        label={words.speed}
        text={words.perSecond(perSecond)}
        value={perSecond}
        max={100}
        change={setPerSecond}
      />
      <span className="tabular-nums">{text}</span>
    </div>
  );
}

interface SliderProps {
  label: string;
  text: string;
  value: number;
  max: number;
  change(value: number): void;
}

export function Slider({ label, text, value, max, change }: SliderProps) {
  return (
    <label className="flex items-center gap-2">
      {label}
      <input
        type="range"
        min={1}
        max={max}
        value={value}
        aria-label={label}
        aria-valuetext={text}
        onChange={(event) => change(event.currentTarget.valueAsNumber)}
        className="w-24 accent-accent"
      />
      <span className="min-w-24 tabular-nums">{text}</span>
    </label>
  );
}
