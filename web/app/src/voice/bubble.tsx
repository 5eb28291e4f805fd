import type { Block } from "@throughline/client";
import { Download, Pause, Play } from "lucide-react";
import { useEffect, useId, useMemo, useReducer, useSyncExternalStore } from "react";
import { useChat, useEntry } from "../chat/context.tsx";
import { useWords } from "../i18n/use.ts";
import { IconButton } from "../ui/icon-button.tsx";
import { autoplay } from "./autoplay.ts";
import { takeLive } from "./live.ts";
import { voice } from "./player.ts";
import { Recording } from "./recording.ts";

/** Maximum number of bars; in a long recording, each bar is the loudest of several moments. */
const BARS_MAX = 120;
const BAR_WIDTH = 3;
const HEIGHT = 28;

type AudioBlock = Extract<Readonly<Block>, { kind: "audio" }>;

/** Audio of a model: played as it arrives, and again on demand. */
export default function VoiceBubble({ block, at }: { block: AudioBlock; at: number }) {
  const words = useWords();
  const { recording, position, isPlaying } = useRecording(block, at);
  const transcript = useId();
  const toggle = (): void => {
    if (isPlaying) return voice.pause();
    const isOver = position >= recording.seconds - 0.05;
    void voice.play(recording, isOver ? 0 : position);
  };
  return (
    <section aria-label={words.voice} className="voice-bubble">
      <div className="flex items-center gap-2">
        <IconButton
          label={isPlaying ? words.pauseVoice : words.playVoice}
          aria-describedby={transcript}
          disabled={recording.seconds === 0}
          onClick={toggle}
        >
          {isPlaying ? <Pause aria-hidden size={18} /> : <Play aria-hidden size={18} />}
        </IconButton>
        <Waveform recording={recording} position={position} />
        <span className="text-[12px] text-muted tabular-nums">
          {clock(position)} / {clock(recording.seconds)}
        </span>
        {recording.isComplete && (
          <IconButton label={words.downloadVoice} onClick={() => save(recording)}>
            <Download aria-hidden size={16} />
          </IconButton>
        )}
      </div>
      <p id={transcript} dir="auto" className="mt-1 text-[14px] whitespace-pre-wrap text-muted">
        {block.transcript}
      </p>
      <Autoplay />
    </section>
  );
}

function Autoplay() {
  const words = useWords();
  const chosen = useSyncExternalStore(autoplay.subscribe, autoplay.get);
  return (
    <label className="mt-1 flex w-fit items-center gap-1.5 text-[12px] text-muted">
      <input
        type="checkbox"
        checked={chosen === "on"}
        onChange={(event) => autoplay.set(event.target.checked ? "on" : "off")}
      />
      {words.autoplayVoice}
    </label>
  );
}

function save(recording: Recording): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(recording.wav());
  link.download = "voice.wav";
  link.click();
  // The browser has read the blob by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Recording of a block as it grows, with autoplay. */
function useRecording(block: AudioBlock, at: number) {
  const { avatar, conversation } = useChat();
  const { turnId } = useEntry();
  const recording = useMemo(() => new Recording(), []);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const { data, format, sample_rate, state } = block;
  useEffect(() => {
    const sound = {
      data,
      state,
      ...(format != null && { format }),
      ...(sample_rate != null && { sample_rate }),
    };
    void recording
      .take(sound)
      .catch(() => undefined)
      .then(redraw);
  }, [recording, data, data.length, format, sample_rate, state]);
  const hasBegun = recording.seconds > 0;
  useEffect(() => {
    if (!hasBegun || turnId === undefined || !takeLive(turnId, at)) return;
    // A browser plays no audio before a user gesture.
    if (autoplay.get() === "on" && navigator.userActivation.hasBeenActive) voice.queue(recording);
  }, [hasBegun, recording, turnId, at]);
  useEffect(() => {
    voice.onLevel = (level) => avatar.speak(level);
  }, [avatar]);
  useEffect(() => {
    const fall = (): void => {
      const { running, isStopping } = conversation.get();
      const isOther = running !== undefined && running.turnId !== turnId;
      if (isStopping || isOther) voice.drop(recording);
    };
    const forget = conversation.subscribe(fall);
    return () => {
      forget();
      voice.drop(recording);
    };
  }, [conversation, turnId, recording]);
  const position = useSyncExternalStore(voice.subscribe, () => voice.positionIn(recording));
  const isPlaying = useSyncExternalStore(
    voice.subscribe,
    () => voice.get().recording === recording && !voice.get().isPaused,
  );
  return { recording, position, isPlaying };
}

/** Waveform that fills as audio arrives, with the progress of playback; also a slider to seek. */
function Waveform({ recording, position }: { recording: Recording; position: number }) {
  const words = useWords();
  const bars = barsOf(recording.peaks);
  const progress = recording.seconds === 0 ? 0 : position / recording.seconds;
  return (
    <span className="relative min-w-0 flex-1">
      <svg
        aria-hidden
        className="block h-7 w-full"
        viewBox={`0 0 ${Math.max(bars.length, 1) * BAR_WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        {bars.map((peak, at) => {
          const height = Math.max(2, peak * HEIGHT);
          return (
            <rect
              key={at}
              data-heard={at < progress * bars.length || undefined}
              x={at * BAR_WIDTH}
              y={(HEIGHT - height) / 2}
              width={BAR_WIDTH - 1}
              height={height}
            />
          );
        })}
      </svg>
      <input
        type="range"
        aria-label={words.voicePosition}
        aria-valuetext={clock(position)}
        className="absolute inset-0 h-full w-full cursor-pointer opacity-0"
        min={0}
        max={recording.seconds}
        step={0.1}
        value={position}
        onChange={(event) => void voice.play(recording, event.target.valueAsNumber)}
      />
    </span>
  );
}

function barsOf(peaks: readonly number[]): number[] {
  const perBar = Math.max(1, Math.ceil(peaks.length / BARS_MAX));
  const bars: number[] = [];
  for (let at = 0; at < peaks.length; at += perBar) bars.push(Math.max(...peaks.slice(at, at + perBar)));
  return bars;
}

function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
