// Another machine on the same host may take the processors away in the middle of a measurement: then it is done again.

import { readFileSync } from "node:fs";
import { rounded } from "./figures.ts";

/** More of the processors' time than this given to others, and the measurement is theirs. */
const STOLEN_MAX = 0.02;
/** The row that was disturbed least counts, if none was quiet. */
const TIMES_MAX = 4;
/** Before it is done again others may come to rest; looked at so often, and so many times at most. */
const LOOK_MS = 10_000;
const LOOKS_MAX = 24;

/** Whose row it is, and of what. */
export interface Row {
  subject: string;
  scenario: string;
}

/** The row of a quiet time, with the share of the processors that others had, in percent. */
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
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const before = ticks();
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    if (share(before, ticks()) <= STOLEN_MAX) return;
  }
}

interface Ticks {
  stolen: number;
  all: number;
}

/** Of the first line of `/proc/stat` (proc(5)); where there is none, nothing is known to be stolen. */
function ticks(): Ticks {
  try {
    const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n");
    // The time of guests, the last two, is in the first two already.
    const fields = line.split(/ +/).slice(1, 9).map(Number);
    return { stolen: fields[7] ?? 0, all: fields.reduce((sum, field) => sum + field, 0) };
  } catch {
    return { stolen: 0, all: 0 };
  }
}

function share(before: Ticks, now: Ticks): number {
  return now.all > before.all ? (now.stolen - before.stolen) / (now.all - before.all) : 0;
}
