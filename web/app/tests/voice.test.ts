// Audio of a block: the same samples for any pieces.

import { expect, test } from "vitest";
import { Recording, type Sound } from "../src/voice/recording.ts";

/** 16-bit samples as a model sends them. */
function base64(samples: readonly number[], cut: number): string[] {
  const bytes = new Uint8Array(Int16Array.from(samples).buffer);
  const pieces: string[] = [];
  for (let at = 0; at < bytes.length; at += cut) {
    pieces.push(btoa(String.fromCharCode(...bytes.slice(at, at + cut))));
  }
  return pieces;
}

const SAMPLES = Array.from({ length: 4_800 }, (_, at) => Math.round(20_000 * Math.sin(at / 10)));

async function recorded(sound: Partial<Sound>): Promise<Recording> {
  const recording = new Recording();
  await recording.take({ data: [], state: "closed", ...sound });
  return recording;
}

test("recording is the same for any pieces, also cut within a sample", async () => {
  const whole = await recorded({ data: base64(SAMPLES, SAMPLES.length * 2) });
  expect(whole.seconds).toBeCloseTo(0.2);
  expect(whole.isComplete).toBe(true);
  expect(Math.max(...whole.peaks)).toBeCloseTo(20_000 / 0x8000, 2);
  for (const cut of [1, 3, 7, 999]) {
    const pieces = await recorded({ data: base64(SAMPLES, cut) });
    expect(pieces.pieces.flatMap((piece) => [...piece])).toEqual([...(whole.pieces[0] ?? [])]);
    expect(pieces.peaks).toEqual(whole.peaks);
  }
});

test("growing data is decoded once", async () => {
  const data = base64(SAMPLES, 960);
  const recording = new Recording();
  for (let count = 1; count <= data.length; count += 1) {
    await recording.take({ data: data.slice(0, count), state: "open" });
    expect(recording.isComplete).toBe(false);
  }
  await recording.take({ data, state: "closed" });
  expect(recording.seconds).toBeCloseTo(0.2);
  expect(recording.isComplete).toBe(true);
});

test("sample rate is that of the model", async () => {
  const recording = await recorded({ data: base64(SAMPLES, 960), format: "pcm16", sample_rate: 48_000 });
  expect(recording.seconds).toBeCloseTo(0.1);
});

test("recording is saved as a WAV file", async () => {
  const recording = await recorded({ data: base64(SAMPLES, 960) });
  const file = new DataView(await recording.wav().arrayBuffer());
  expect(file.byteLength).toBe(44 + SAMPLES.length * 2);
  expect(file.getUint32(24, true)).toBe(24_000);
  expect(Math.abs(file.getInt16(44 + 200, true) - (SAMPLES[100] ?? 0))).toBeLessThan(3);
});

test("invalid base64 is silence", async () => {
  expect((await recorded({ data: ["§§§", ...base64(SAMPLES, 9_600)] })).seconds).toBeCloseTo(0.2);
});
