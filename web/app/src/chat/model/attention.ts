// Open approvals: with several of them, exactly one gets the keys. Framework-free.

/** A card with an open approval. */
export interface Pending {
  id: string;
  approve(): void;
  deny(): void;
  /** Shows the lasting choices. */
  choose?(): void;
  /** Shows the lasting denials. */
  chooseDenial?(): void;
  /** Scrolls the card into view. */
  show(): void;
  /** Whether the card is on the screen. */
  isVisible(): boolean;
}

/** The card that gets a key: the newest one on the screen, else the newest. */
export class Attention {
  #pending: readonly Pending[] = [];
  readonly #listeners = new Set<() => void>();

  readonly get = (): readonly Pending[] => this.#pending;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Registers a card; returns a function that removes it. */
  ask(pending: Pending): () => void {
    this.#set([...this.#pending, pending]);
    return () => this.#set(this.#pending.filter((one) => one !== pending));
  }

  chosen(): Pending | undefined {
    return this.#pending.findLast((one) => one.isVisible()) ?? this.#pending.at(-1);
  }

  /** Handles a key; returns whether it was for a card. */
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

/** True for elements that take text input. */
export function isTyped(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input, textarea, select, [role=textbox]"))
  );
}
