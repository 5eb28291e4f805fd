// Audio of one block, as the samples that have arrived. Framework-free.

/** OpenAI streams 16-bit little-endian mono at this rate, and names neither; Gemini names both. */
const SAMPLE_RATE_HZ = 24_000;
/** Bars of a waveform per second. */
export const PEAKS_PER_SECOND = 20;
const WAV_HEADER_BYTES = 44;

/** The part of an audio block that a recording uses. */
export interface Sound {
  /** Pieces of base64. */
  data: readonly string[];
  format?: string | null;
  sample_rate?: number | null;
  state: "open" | "closed";
}

export class Recording {
  sampleRate = SAMPLE_RATE_HZ;
  /** Samples that have arrived. */
  readonly pieces: Float32Array<ArrayBuffer>[] = [];
  /** Peak of each moment, from 0 to 1. */
  readonly peaks: number[] = [];
  isComplete = false;
  #samples = 0;
  #taken = 0;
  /** First byte of an incomplete sample at the end of a piece. */
  #rest: number | undefined;
  #decoding: Promise<void> | undefined;

  get seconds(): number {
    return this.#samples / this.sampleRate;
  }

  /** Decodes the new pieces. Resolves when they can be played. */
  async take(sound: Sound): Promise<void> {
    const [first] = sound.data;
    if (first === undefined) return;
    const isRaw = sound.format === "pcm16" || (sound.format == null && !hasHeader(first));
    if (isRaw) {
      this.sampleRate = sound.sample_rate ?? SAMPLE_RATE_HZ;
      for (; this.#taken < sound.data.length; this.#taken += 1) {
        this.#add(this.#samplesOf(bytesOf(sound.data[this.#taken] ?? "")));
      }
      this.isComplete = sound.state === "closed";
      return;
    }
    // A file in pieces can only be decoded as a whole.
    if (sound.state !== "closed") return;
    this.#decoding ??= this.#decode(sound.data);
    await this.#decoding;
  }

  /** The recording as a file. */
  wav(): Blob {
    const header = new DataView(new ArrayBuffer(WAV_HEADER_BYTES));
    const bytes = this.#samples * 2;
    const write = (at: number, text: string): void => {
      for (let i = 0; i < text.length; i += 1) header.setUint8(at + i, text.charCodeAt(i));
    };
    write(0, "RIFF");
    header.setUint32(4, WAV_HEADER_BYTES - 8 + bytes, true);
    write(8, "WAVEfmt ");
    header.setUint32(16, 16, true);
    header.setUint16(20, 1, true);
    header.setUint16(22, 1, true);
    header.setUint32(24, this.sampleRate, true);
    header.setUint32(28, this.sampleRate * 2, true);
    header.setUint16(32, 2, true);
    header.setUint16(34, 16, true);
    write(36, "data");
    header.setUint32(40, bytes, true);
    const samples = this.pieces.map((piece) => Int16Array.from(piece, (sample) => sample * 0x7fff));
    return new Blob([header, ...samples], { type: "audio/wav" });
  }

  #add(samples: Float32Array<ArrayBuffer>): void {
    if (samples.length === 0) return;
    const perPeak = this.sampleRate / PEAKS_PER_SECOND;
    for (let i = 0; i < samples.length; i += 1) {
      const peak = Math.floor((this.#samples + i) / perPeak);
      this.peaks[peak] = Math.max(this.peaks[peak] ?? 0, Math.abs(samples[i] ?? 0));
    }
    this.pieces.push(samples);
    this.#samples += samples.length;
  }

  #samplesOf(bytes: Uint8Array): Float32Array<ArrayBuffer> {
    const all = this.#rest === undefined ? bytes : Uint8Array.from([this.#rest, ...bytes]);
    this.#rest = all.length % 2 === 1 ? all.at(-1) : undefined;
    const view = new DataView(all.buffer, all.byteOffset, all.length - (all.length % 2));
    const samples = new Float32Array(view.byteLength / 2);
    for (let i = 0; i < samples.length; i += 1) samples[i] = view.getInt16(i * 2, true) / 0x8000;
    return samples;
  }

  async #decode(data: readonly string[]): Promise<void> {
    const pieces = data.map(bytesOf);
    const file = await new Blob(pieces).arrayBuffer();
    const decoded = await new OfflineAudioContext(1, 1, SAMPLE_RATE_HZ).decodeAudioData(file);
    this.sampleRate = decoded.sampleRate;
    this.#add(decoded.getChannelData(0));
    this.isComplete = true;
  }
}

/** True for the base64 of `RIFF`, `ID3`, MPEG, `OggS` and `fLaC`. */
function hasHeader(base64: string): boolean {
  return /^(UklGR|SUQz|\/\/[uvst]|T2dnU|ZkxhQ)/.test(base64);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    // Invalid base64 becomes silence; the transcript remains.
    return new Uint8Array();
  }
}
