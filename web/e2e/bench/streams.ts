// Streaming scenarios: processor time and latency of a reply at a fixed rate.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { most, OURS, percentile, rounded } from "./figures.ts";
import type { Load } from "./script.ts";
import { Tab } from "./tab.ts";
import type { Run, Upstream } from "./upstream.ts";

export interface Scenario {
  name: string;
  load: Load;
  /** Factor by which the processor is throttled for the page. */
  slower?: number;
}

export const FULL: readonly Scenario[] = [
  { name: "s1", load: { rate: 300, seconds: 60, cards: 30, rows: 40 } },
  { name: "s2", load: { rate: 300, seconds: 40, cards: 0, rows: 0 } },
  { name: "s3", load: { rate: 300, seconds: 20, cards: 9, rows: 40 }, slower: 4 },
  { name: "s4", load: { rate: 1500, seconds: 20, cards: 9, rows: 40 } },
];

export const QUICK: readonly Scenario[] = [
  { name: "s1", load: { rate: 300, seconds: 10, cards: 6, rows: 40 } },
  { name: "s2", load: { rate: 300, seconds: 8, cards: 0, rows: 0 } },
  { name: "s3", load: { rate: 300, seconds: 6, cards: 3, rows: 40 }, slower: 4 },
  { name: "s4", load: { rate: 1500, seconds: 5, cards: 3, rows: 40 } },
];

/** Folder for a profile of each scenario. */
const PROFILES = process.env.BENCH_PROFILES;
/** Interval of keystrokes during the stream. */
const TYPED_EVERY_MS = 1_500;
/** Time limit after the end of the stream. */
const TIMEOUT_MS = 20_000;

export async function stream(
  subject: string,
  url: string,
  upstream: Upstream,
  { name, load, slower = 1 }: Scenario,
) {
  const tab = await Tab.open(url);
  try {
    await tab.page.locator("textarea").first().waitFor();
    if (slower > 1) await tab.slow(slower);
    const question = `${subject} ${name} rate=${load.rate} seconds=${load.seconds} cards=${load.cards} rows=${load.rows}`;
    const before = await tab.counters();
    const profiled = PROFILES === undefined ? undefined : await tab.profile();
    await tab.begin();
    await tab.ask(question);
    const run = await ended(upstream, question, load.seconds, () => tab.page.keyboard.press("x"));
    const shown = await caughtUp(tab, run);
    const after = await tab.counters();
    const seen = await tab.end();
    if (profiled) writeFileSync(join(PROFILES ?? "", `${subject}-${name}.cpuprofile`), await profiled());
    if (slower > 1) await tab.slow(1);
    await tab.settled();
    const kept = await tab.collected();
    if (tab.complaints.length > 0) {
      const complained = `${subject} ${name}: ${tab.complaints.join("; ")}`;
      // Errors in the console of peers do not count.
      if (subject === OURS) throw new Error(complained);
      process.stderr.write(`  ${complained}\n`);
    }
    const lags = delays(run.stamps, seen.stamps);
    const cards = delays(run.calls, seen.cards);
    return {
      subject,
      scenario: name,
      ...load,
      pieces: run.pieces,
      characters: run.characters,
      script_s: rounded(after.ScriptDuration - before.ScriptDuration, 2),
      task_s: rounded(after.TaskDuration - before.TaskDuration, 2),
      long_tasks: seen.long.length,
      long_max_ms: rounded(most(seen.long), 0),
      frames: seen.frames.length,
      frame_p95_ms: rounded(percentile(seen.frames, 0.95)),
      frame_p99_ms: rounded(percentile(seen.frames, 0.99)),
      frames_over_25: seen.frames.filter((ms) => ms > 25).length,
      lag_p50_ms: rounded(percentile(lags, 0.5)),
      lag_p95_ms: rounded(percentile(lags, 0.95)),
      lag_max_ms: rounded(most(lags)),
      tail_ms: shown ? rounded((seen.stamps.at(-1) ?? 0) - (run.stamps.at(-1) ?? 0)) : TIMEOUT_MS,
      card_p95_ms: rounded(percentile(cards, 0.95)),
      input_max_ms: rounded(most(seen.inputs)),
      heap_mb: rounded(kept.JSHeapUsedSize / 1e6),
      nodes: kept.Nodes,
    };
  } finally {
    await tab.close();
  }
}

/** The run, when the model has sent its last piece. */
async function ended(
  upstream: Upstream,
  question: string,
  seconds: number,
  type: () => Promise<void>,
): Promise<Run> {
  const late = Date.now() + seconds * 1_000 + 60_000;
  for (let typed = Date.now(); ; ) {
    const run = upstream.run(question);
    if (run?.ended !== undefined) return run;
    if (Date.now() > late)
      throw new Error(`${question}: ${run === undefined ? "was not sent" : "does not end"}`);
    if (run !== undefined && Date.now() - typed > TYPED_EVERY_MS) {
      typed = Date.now();
      await type();
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Whether everything is on the screen in the end. */
async function caughtUp(tab: Tab, run: Run): Promise<boolean> {
  const late = Date.now() + TIMEOUT_MS;
  while ((await tab.lastStamp()) < run.stamps.length - 1) {
    if (Date.now() > late) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}

/** Delay from sending to display. A stamp that never appeared gets the maximum. */
function delays(sent: readonly number[], seen: readonly number[]): number[] {
  return Object.keys(sent).map(
    (at) => (seen[Number(at)] ?? Number.POSITIVE_INFINITY) - (sent[Number(at)] ?? 0),
  );
}
