// Whether the next conversation is a temporary one: neither listed nor searched, and deleted when it is left. Framework-free.

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
