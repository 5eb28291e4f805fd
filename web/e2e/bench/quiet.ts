// Detects other load on the host during a measurement, which is then repeated.

import { readFileSync } from "node:fs";
import { rounded } from "./figures.ts";

/** Share of stolen processor time above which a measurement is repeated. */
const STOLEN_MAX = 0.02;
/** After this many repetitions the row with the least disturbance counts. */
const TIMES_MAX = 4;
/** Interval and number of checks for a quiet host before a repetition. */
const CHECK_MS = 10_000;
const CHECKS_MAX = 24;

/** Name and scenario of a row. */
export interface Row {
  subject: string;
  scenario: string;
}

/** Measures until the host is quiet, with the stolen share in percent. */
export async function undisturbed(
  measure: () => Promise<Row>,
  times = TIMES_MAX,
): Promise<Row & { stolen_percent: number }> {
  let best: { row: Row; stolen: number } | undefined;
  for (let time = 1; ; time += 1) {
    const began = ticks();
    const row = await measure();
    const stolen = share(began, ticks());
    if (best === undefined || stolen < best.stolen) best = { row, stolen };
    if (best.stolen <= STOLEN_MAX || time >= times) {
      return { ...best.row, stolen_percent: rounded(best.stolen * 100) };
    }
    process.stderr.write(
      `  ${row.subject} ${row.scenario}: ${(stolen * 100).toFixed(1)} % of the processors' time was given to other machines: measured again\n`,
    );
    await rest();
  }
}

async function rest(): Promise<void> {
  for (let check = 0; check < CHECKS_MAX; check += 1) {
    const before = ticks();
    await new Promise((resolve) => setTimeout(resolve, CHECK_MS));
    if (share(before, ticks()) <= STOLEN_MAX) return;
  }
}

interface Ticks {
  stolen: number;
  all: number;
}

/** First line of `/proc/stat` (proc(5)); without it, nothing counts as stolen. */
function ticks(): Ticks {
  try {
    const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
    // Guest time, the last two, is included in the first two.
    const fields = line.split(/ +/).slice(1, 9).map(Number);
    return { stolen: fields[7] ?? 0, all: fields.reduce((sum, field) => sum + field, 0) };
  } catch {
    return { stolen: 0, all: 0 };
  }
}

function share(before: Ticks, now: Ticks): number {
  return now.all > before.all ? (now.stolen - before.stolen) / (now.all - before.all) : 0;
}
