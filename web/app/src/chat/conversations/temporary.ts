// Whether the next conversation is temporary: neither listed nor searched, and deleted when it is closed. Framework-free.

let isTemporary = false;
const listeners = new Set<() => void>();

export const temporary = {
  get: (): boolean => isTemporary,
  set: (value: boolean): void => {
    isTemporary = value;
    for (const listener of listeners) listener();
  },
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
