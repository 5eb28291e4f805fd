// Moments of a turn: the events up to a time. Framework-free.

interface Timed {
  timestamp: number;
}

/** Number of events up to this many milliseconds; at least the first one. */
export function countUntil(events: readonly Timed[], ms: number): number {
  const begin = events[0]?.timestamp ?? 0;
  let [low, high] = [Math.min(1, events.length), events.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((events[middle - 1]?.timestamp ?? 0) - begin <= ms) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The last event up to this many milliseconds. */
export function eventAt<E extends Timed>(events: readonly E[], ms: number): E | undefined {
  return events[countUntil(events, ms) - 1];
}

/** Round values on an axis of this length, at most six besides zero. */
export function ticksOf(whole: number): number[] {
  if (whole <= 0) return [];
  const raw = whole / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? raw);
  return Array.from({ length: Math.floor(whole / step) + 1 }, (_, at) => at * step);
}
