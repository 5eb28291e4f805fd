// Open approvals: with several of them, exactly one gets the keys. Framework-free.

import { Store } from "../../store.ts";

/** A card with an open approval. */
export interface OpenApproval {
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
export class OpenApprovals extends Store<readonly OpenApproval[]> {
  constructor() {
    super([]);
  }

  /** Registers a card; returns a function that removes it. */
  add(approval: OpenApproval): () => void {
    this.replace([...this.state, approval]);
    return () => this.replace(this.state.filter((one) => one !== approval));
  }

  target(): OpenApproval | undefined {
    return this.state.findLast((one) => one.isVisible()) ?? this.state.at(-1);
  }

  /** Handles a key; returns whether it was for a card. */
  key(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey" | "repeat">): boolean {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return false;
    const target = this.target();
    if (target === undefined) return false;
    const key = event.key.toLowerCase();
    if (event.shiftKey) {
      const choose = { a: target.choose, d: target.chooseDenial }[key];
      choose?.();
      return choose !== undefined;
    }
    switch (key) {
      case "a":
        target.approve();
        return true;
      case "d":
        target.deny();
        return true;
      case "f6":
        target.show();
        return true;
      default:
        return false;
    }
  }
}

/** True for elements that take text input. */
export function isTyped(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input, textarea, select, [role=textbox]"))
  );
}
