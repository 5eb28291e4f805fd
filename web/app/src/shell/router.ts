// Where the page is: the path of the address, and what a view keeps behind its `?` or `#`. Framework-free.

type Listener = () => void;
/** Is asked before the page goes elsewhere; `false`: it stays. */
type Guard = (to: string) => boolean;

const listeners = new Set<Listener>();
const address = (): string => location.pathname + location.search + location.hash;
let guard: Guard | undefined;
let here = address();

function tell(): void {
  here = address();
  for (const listener of listeners) listener();
}

globalThis.addEventListener?.("popstate", () => {
  // Going back cannot be refused, but taken back.
  if (guard?.(address()) === false) history.pushState(null, "", here);
  else tell();
});

export const path = (): string => location.pathname;
/** `?tool=time.now`, or nothing. */
export const search = (): string => location.search;
/** As that, for what no server may be sent. */
export const hash = (): string => location.hash;

export function onPath(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** While there is something to lose, whoever knows of it is asked first. Gives the function that ends that. */
export function guarded(by: Guard): () => void {
  guard = by;
  return () => {
    if (guard === by) guard = undefined;
  };
}

/** Goes elsewhere in the page. `replace`: going back does not come here again. */
export function go(to: string, how: "push" | "replace" = "push"): void {
  if (to === address() || guard?.(to) === false) return;
  if (how === "push") history.pushState(null, "", to);
  else history.replaceState(null, "", to);
  tell();
}
