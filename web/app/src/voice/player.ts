// One voice at a time: plays a recording while it still grows, and reports its loudness. Framework-free.

import { Store } from "../store.ts";
import type { Recording } from "./recording.ts";

/** Audio scheduled ahead of time, so that a busy page leaves no gap. */
const AHEAD_SECONDS = 30;
/** Delay after a gap, and at the start. */
const LEAD_SECONDS = 0.05;

export interface Playing {
  readonly recording: Recording | undefined;
  /** Paused by the user. */
  readonly isPaused: boolean;
}

/** A scheduled part of a recording. */
interface Stretch {
  source: AudioBufferSourceNode;
  startsAt: number;
  from: number;
  seconds: number;
}

const SILENT: Playing = { recording: undefined, isPaused: false };

export class VoicePlayer extends Store<Playing> {
  #context: AudioContext | undefined;
  #analyser: AnalyserNode | undefined;
  #stretches: Stretch[] = [];
  /** Index of the next piece to schedule, and its start in seconds. */
  #nextPiece = 0;
  #nextFrom = 0;
  #nextAt = 0;
  #position = 0;
  #frame: number | undefined;
  #queued: Recording[] = [];
  /** Called with the loudness, from 0 to 1, in every frame of playback, and with 0 at its end. */
  onLevel: (level: number) => void = () => undefined;

  constructor() {
    super(SILENT);
  }

  /** Playback position in this recording, in seconds. */
  positionIn(recording: Recording): number {
    return this.state.recording === recording ? this.#position : 0;
  }

  /** Plays from a position in seconds. Any other recording stops. */
  async play(recording: Recording, from = 0): Promise<void> {
    this.#silence();
    this.#context ??= new AudioContext();
    this.#analyser ??= this.#listenTo(this.#context);
    this.#position = from;
    this.#nextPiece = 0;
    this.#nextFrom = 0;
    this.#nextAt = 0;
    this.replace({ recording, isPaused: false });
    await this.#context.resume();
    this.#follow();
  }

  /** Plays the recording as soon as the player is idle. */
  queue(recording: Recording): void {
    if (this.state.recording === undefined) void this.play(recording);
    else this.#queued.push(recording);
  }

  /** Stops this recording and removes it from the queue. */
  drop(recording: Recording): void {
    this.#queued = this.#queued.filter((queued) => queued !== recording);
    if (this.state.recording === recording) this.stop();
  }

  pause(): void {
    if (this.state.recording === undefined) return;
    this.#silence();
    this.update({ isPaused: true });
  }

  /** Stops at once, and clears the queue. */
  stop(): void {
    this.#queued = [];
    this.#silence();
    this.replace(SILENT);
  }

  #end(): void {
    this.#silence();
    this.replace(SILENT);
    const next = this.#queued.shift();
    if (next !== undefined) void this.play(next);
  }

  readonly #follow = (): void => {
    const { recording, isPaused } = this.state;
    const context = this.#context;
    if (recording === undefined || isPaused || context === undefined) return;
    this.#handOver(recording, context);
    const now = context.currentTime;
    const sounding = this.#stretches.findLast((stretch) => stretch.startsAt <= now);
    if (sounding !== undefined) {
      this.#position = sounding.from + Math.min(now - sounding.startsAt, sounding.seconds);
    }
    const isOver = recording.isComplete && this.#position >= recording.seconds - 0.01;
    if (isOver) return this.#end();
    this.onLevel(this.#level());
    this.notify();
    this.#frame = requestAnimationFrame(this.#follow);
  };

  #handOver(recording: Recording, context: AudioContext): void {
    while (this.#nextPiece < recording.pieces.length && this.#nextAt < context.currentTime + AHEAD_SECONDS) {
      const piece = recording.pieces[this.#nextPiece];
      this.#nextPiece += 1;
      if (piece === undefined) continue;
      const seconds = piece.length / recording.sampleRate;
      const from = this.#nextFrom;
      this.#nextFrom += seconds;
      // Samples before the start position are skipped.
      const skipped = Math.max(0, this.#position - from);
      if (this.#stretches.length === 0 && skipped >= seconds) continue;
      this.#sound(recording, context, piece, from, this.#stretches.length === 0 ? skipped : 0);
    }
  }

  #sound(
    recording: Recording,
    context: AudioContext,
    piece: Float32Array<ArrayBuffer>,
    from: number,
    skipped: number,
  ): void {
    const buffer = context.createBuffer(1, piece.length, recording.sampleRate);
    buffer.copyToChannel(piece, 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#analyser ?? context.destination);
    const startsAt = this.#nextAt < context.currentTime ? context.currentTime + LEAD_SECONDS : this.#nextAt;
    source.start(startsAt, skipped);
    const seconds = buffer.duration - skipped;
    this.#nextAt = startsAt + seconds;
    this.#stretches.push({ source, startsAt, from: from + skipped, seconds });
  }

  #listenTo(context: AudioContext): AnalyserNode {
    const analyser = context.createAnalyser();
    analyser.fftSize = 1_024;
    analyser.connect(context.destination);
    return analyser;
  }

  #level(): number {
    if (this.#analyser === undefined) return 0;
    const samples = new Float32Array(this.#analyser.fftSize);
    this.#analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    // Loud speech has a root mean square of about 0.1 to 0.2.
    return Math.min(1, Math.sqrt(power) * 5);
  }

  #silence(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    for (const { source } of this.#stretches) {
      source.stop();
      source.disconnect();
    }
    this.#stretches = [];
    this.onLevel(0);
  }
}

/** Player of this page. */
export const voice = new VoicePlayer();
