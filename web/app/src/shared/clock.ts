// One clock for all running times on the screen, ten times a second. It writes text without rendering.

type Tick = (now: number) => void;

const EVERY_MS = 100;
const ticks = new Set<Tick>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Calls back now and with every tick; returns a function that ends it. */
export function everyTick(tick: Tick): () => void {
  ticks.add(tick);
  tick(Date.now());
  timer ??= setInterval(() => {
    const now = Date.now();
    for (const tick of ticks) tick(now);
  }, EVERY_MS);
  return () => {
    ticks.delete(tick);
    if (ticks.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}
