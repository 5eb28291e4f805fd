// Main-thread work of each frame, from the browser's trace: scripts, styles and layout, apart from painting.

import type { CDPSession } from "playwright-core";

/** Work of one frame in milliseconds of the main thread. */
export interface FrameWork {
  /** Scripts, styles and layout. */
  page: number;
  /** Rasterization, which a graphics processor would do elsewhere. */
  painting: number;
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur?: number;
  tdur?: number;
}

const CATEGORIES = [
  "devtools.timeline",
  "disabled-by-default-devtools.timeline",
  "disabled-by-default-devtools.timeline.frame",
];
const FRAME = "BeginMainThreadFrame";
const PAGE = new Set([
  "EventDispatch",
  "FireAnimationFrame",
  "FunctionCall",
  "HitTest",
  "IntersectionObserverController::computeIntersections",
  "Layout",
  "RunMicrotasks",
  "TimerFire",
  "UpdateLayoutTree",
]);
const PAINTING = new Set(["Commit", "Layerize", "Paint", "PrePaint", "ScrollLayer", "UpdateLayer"]);

/** Traces an action. */
export async function frameWork(debug: CDPSession, happen: () => Promise<void>): Promise<FrameWork[]> {
  const events: TraceEvent[] = [];
  debug.on("Tracing.dataCollected", ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  const ended = new Promise<void>((resolve) => debug.once("Tracing.tracingComplete", () => resolve()));
  await debug.send("Tracing.start", {
    transferMode: "ReportEvents",
    traceConfig: { includedCategories: CATEGORIES },
  });
  await happen();
  await debug.send("Tracing.end");
  await ended;
  return workOf(events);
}

function workOf(events: readonly TraceEvent[]): FrameWork[] {
  const frames = events.filter(({ name }) => name === FRAME).sort((a, b) => a.ts - b.ts);
  const [first] = frames;
  if (first === undefined) return [];
  const isOfThePage = ({ pid, tid }: TraceEvent): boolean => pid === first.pid && tid === first.tid;
  const spans = events.filter((one) => one.ph === "X" && isOfThePage(one)).sort((a, b) => a.ts - b.ts);
  const work = frames.map(() => ({ page: 0, painting: 0 }));
  let [at, covered] = [0, 0];
  for (const { name, ts, dur = 0, tdur = dur } of spans) {
    const kind = PAGE.has(name) ? "page" : PAINTING.has(name) ? "painting" : undefined;
    // Nested tasks are counted with the outer one.
    if (kind === undefined || ts < covered) continue;
    covered = ts + dur;
    while ((frames[at + 1]?.ts ?? Number.POSITIVE_INFINITY) <= ts) at += 1;
    const frame = work[at];
    if (frame !== undefined) frame[kind] += tdur / 1_000;
  }
  return work;
}
