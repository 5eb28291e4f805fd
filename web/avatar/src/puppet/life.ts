// Idle movement of the puppet: it breathes, blinks, and looks around now and then.

const BLINK_MS = 150;

export class Life {
  readonly #random: () => number;
  #blinkAt = 0;
  #glanceAt = 0;
  #glance = 0;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Called before the first frame and after a pause: missed time is skipped. */
  wake(now: number): void {
    this.#blinkAt = now + 1_200 + this.#random() * 2_500;
    this.#glanceAt = now + 3_000 + this.#random() * 4_000;
  }

  /** Openness of the lids. */
  lids(now: number): number {
    if (now > this.#blinkAt + BLINK_MS) {
      // Sometimes twice in a row.
      this.#blinkAt = now + (this.#random() < 0.15 ? 180 : 2_400 + this.#random() * 3_400);
    }
    const since = now - this.#blinkAt;
    return since < 0 ? 1 : Math.abs(1 - (2 * since) / BLINK_MS);
  }

  /** Whether the lids are moving. */
  isBlinking(now: number): boolean {
    return now >= this.#blinkAt && now <= this.#blinkAt + BLINK_MS;
  }

  glance(now: number): number {
    if (now > this.#glanceAt) {
      this.#glance = this.#glance === 0 ? (this.#random() - 0.5) * 0.7 : 0;
      this.#glanceAt = now + (this.#glance === 0 ? 3_000 + this.#random() * 4_000 : 900);
    }
    return this.#glance;
  }

  /** Breath: -1 out, 1 in. */
  breath(now: number): number {
    return Math.sin(now / 620);
  }
}
