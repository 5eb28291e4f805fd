// State outside React, read with `useSyncExternalStore`. Framework-free.

/** Notifies subscribers of changes. */
export class Observable {
  readonly #listeners = new Set<() => void>();

  /** Adds a listener; returns a function that removes it. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  protected notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** A value that only its own methods change. Each change replaces the value. */
export class Store<T> extends Observable {
  protected state: T;

  constructor(state: T) {
    super();
    this.state = state;
  }

  readonly get = (): T => this.state;

  protected replace(state: T): void {
    this.state = state;
    this.notify();
  }

  protected update(change: Partial<T>): void {
    this.replace({ ...this.state, ...change });
  }
}

/** A value that anybody may set. */
export class Variable<T> extends Store<T> {
  readonly set = (value: T): void => this.replace(value);
}
