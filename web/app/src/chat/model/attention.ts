// Calls that wait for a person: of several, exactly one gets the keys. Framework-free.

/** A card with a question. */
export interface Pending {
  id: string;
  approve(): void;
  deny(): void;
  /** Offers answers that last. */
  choose?(): void;
  /** Offers denials that last. */
  chooseDenial?(): void;
  /** Brings it before the eyes. */
  show(): void;
  /** Whether it is on the screen. */
  isVisible(): boolean;
}

/** Which card a key is for: the newest one on the screen, else the newest. */
export class Attention {
  #pending: readonly Pending[] = [];
  readonly #listeners = new Set<() => void>();

  readonly get = (): readonly Pending[] => this.#pending;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** A card asks; the answer takes it back. */
  ask(pending: Pending): () => void {
    this.#set([...this.#pending, pending]);
    return () => this.#set(this.#pending.filter((one) => one !== pending));
  }

  chosen(): Pending | undefined {
    return this.#pending.findLast((one) => one.isVisible()) ?? this.#pending.at(-1);
  }

  /** Whether the key was for a card. */
  key(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey" | "repeat">): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return false;
    const chosen = this.chosen();
    if (chosen === undefined) return false;
    const key = event.key.toLowerCase();
    if (event.shiftKey) {
      const choose = { a: chosen.choose, d: chosen.chooseDenial }[key];
      choose?.();
      return choose !== undefined;
    }
    switch (key) {
      case "a":
        chosen.approve();
        return true;
      case "d":
        chosen.deny();
        return true;
      case "f6":
        chosen.show();
        return true;
      default:
        return false;
    }
  }

  #set(pending: readonly Pending[]): void {
    this.#pending = pending;
    for (const listener of this.#listeners) listener();
  }
}

/** Whether typing goes into this. */
export function isTyped(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input, textarea, select, [role=textbox]"))
  );
}
