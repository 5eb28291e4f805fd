// Router: the path of the address, its query and its hash. Framework-free.

import { Variable } from "../store.ts";

/** Called before navigation; `false` cancels it. */
type Guard = (to: string) => boolean;

const address = (): string => location.pathname + location.search + location.hash;
let guard: Guard | undefined;
/** The address after the last navigation. */
const current = new Variable(address());
const navigated = (): void => current.set(address());

globalThis.addEventListener?.("popstate", () => {
  // Going back cannot be canceled, but reverted.
  if (guard?.(address()) === false) history.pushState(null, "", current.get());
  else navigated();
});

export const path = (): string => location.pathname;
/** The query with `?`, or an empty string. */
export const search = (): string => location.search;
/** The hash with `#`, for data that no server may get. */
export const hash = (): string => location.hash;

export const onPath = current.subscribe;

/** Registers a guard for unsaved changes. Returns a function that removes it. */
export function guarded(by: Guard): () => void {
  guard = by;
  return () => {
    if (guard === by) guard = undefined;
  };
}

/** Navigates within the page. `replace`: without a history entry. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  if (to === address() || guard?.(to) === false) return;
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  navigated();
}
