// Probe inside of a page, ours or a peer's. It is injected as text, so it uses nothing from outside of itself.

/** Measurements of a page. */
export interface Measurements {
  /** Milliseconds between frames. */
  frames: number[];
  /** Durations of tasks over 50 ms. */
  long: number[];
  /** Time when each stamp appeared, in milliseconds since 1970. */
  stamps: number[];
  /** Time when each card appeared. */
  cards: number[];
  /** From a key or a click to the next frame; under 16 ms is 0. */
  inputs: number[];
}

export interface Probe {
  begin(): void;
  /** Highest stamp on the screen. */
  last(): number;
  end(): Measurements;
}

declare global {
  interface Window {
    bench: Probe;
  }
}

/** Creates `window.bench`. */
export function probe(): void {
  /** Limits of the search at the end of the text: nodes, and characters per node, since hidden outputs are long. */
  const [nodesMax, charactersMax] = [60, 300];
  const [long, inputs] = [[] as number[], new Map<number, number>()];
  let [frames, stamps, cards] = [[] as number[], [] as number[], [] as number[]];
  let [isOn, before, highest] = [false, 0, 0];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) long.push(entry.duration);
  }).observe({ type: "longtask", buffered: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as PerformanceEventTiming[]) {
      if (entry.interactionId === 0) continue;
      inputs.set(entry.interactionId, Math.max(entry.duration, inputs.get(entry.interactionId) ?? 0));
    }
  }).observe({ type: "event", durationThreshold: 16, buffered: true } as PerformanceObserverInit);

  const articles = document.getElementsByTagName("article");
  const shown = document.getElementsByClassName("card");
  /** End of the last message in document order, back to the last seen stamp. */
  const tail = (): string => {
    const last = articles[articles.length - 1];
    if (last === undefined) return "";
    const walker = document.createTreeWalker(last, NodeFilter.SHOW_TEXT);
    const [known, parts] = [`§${highest}§`, [] as string[]];
    for (
      let node = walker.lastChild();
      node !== null && parts.length < nodesMax;
      node = walker.previousNode()
    ) {
      const part = (node.nodeValue ?? "").slice(-charactersMax);
      parts.push(part);
      if (part.includes(known)) break;
    }
    return parts.reverse().join("");
  };
  const check = (): void => {
    const now = performance.timeOrigin + performance.now();
    while (cards.length < shown.length) cards.push(now);
    for (const [, found] of tail().matchAll(/§(\d+)§/g)) {
      for (const stamp = Number(found); highest < stamp; ) {
        highest += 1;
        stamps[highest] = now;
      }
    }
  };
  // A task after a frame runs when that frame has been painted.
  const channel = new MessageChannel();
  channel.port1.onmessage = check;
  const frame = (time: number): void => {
    if (!isOn) return;
    if (before > 0) frames.push(time - before);
    before = time;
    channel.port2.postMessage(undefined);
    requestAnimationFrame(frame);
  };
  window.bench = {
    begin() {
      [frames, stamps, cards] = [[], [], []];
      [isOn, before, highest] = [true, 0, 0];
      long.length = 0;
      inputs.clear();
      cards = Array(shown.length).fill(0);
      requestAnimationFrame(frame);
    },
    last: () => highest,
    end() {
      isOn = false;
      return {
        frames,
        long: [...long],
        stamps,
        cards: cards.filter((at) => at > 0),
        inputs: [...inputs.values()],
      };
    },
  };
}
