// Where the page is: the path of the address, and what a view keeps behind its `?` or `#`. Framework-free.

type Listener = () => void;

const listeners = new Set<Listener>();
const tell = (): void => {
  for (const listener of listeners) listener();
};
globalThis.addEventListener?.("popstate", tell);

export const path = (): string => location.pathname;
/** `?tool=time.now`, or nothing. */
export const search = (): string => location.search;
/** As that, for what no server may be sent. */
export const hash = (): string => location.hash;

export function onPath(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Goes elsewhere in the page. `replace`: going back does not come here again. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  if (to === location.pathname + location.search + location.hash) return;
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  tell();
}
