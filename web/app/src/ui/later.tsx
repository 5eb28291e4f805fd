import { type ComponentType, type ReactNode, useEffect, useSyncExternalStore } from "react";
import { PartFailed } from "./part-failed.tsx";

/**
 * Where a part that could not be fetched is missed: in the text, as a whole view, above the page (a dialog or a menu, which has no place
 * of its own), or nowhere, because nobody has asked for it yet.
 */
export type Missed = "inline" | "view" | "above" | "nowhere";

interface LaterState<P> {
  part?: ComponentType<P>;
  isAsked: boolean;
  /** So many attempts have failed. */
  failures: number;
}

interface LaterProps {
  /** In its place until it is there. */
  meanwhile?: ReactNode;
  missed?: Missed;
}

/** Parts that could not be fetched, which are asked for again when the network is back. */
const failed = new Set<() => Promise<boolean>>();
globalThis.addEventListener?.("online", () => {
  for (const again of [...failed]) void again();
});

/**
 * A part of the page that is fetched by itself. Unlike `lazy`, what has come is drawn at once: React shows a `Suspense` that has begun to
 * wait for 300 ms, and whatever stands below it would jump twice. One that could not be fetched says so where it is missed, and is
 * fetched again when somebody wants that, opens it again, or is online again.
 */
export function later<P extends object>(
  fetch: () => Promise<{ default: ComponentType<P> }>,
  usually: Missed = "inline",
) {
  let state: LaterState<P> = { isAsked: false, failures: 0 };
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const get = (): LaterState<P> => state;
  const become = (next: LaterState<P>): void => {
    state = next;
    for (const listener of listeners) listener();
  };
  /** Whoever knows that it will be needed asks for it before that. True: it has come. */
  const ask = async (): Promise<boolean> => {
    const { part, isAsked, failures } = state;
    if (isAsked || part !== undefined) return part !== undefined;
    become({ isAsked: true, failures });
    try {
      const fetched = await fetch();
      failed.delete(ask);
      become({ part: fetched.default, isAsked: false, failures: 0 });
      return true;
    } catch {
      failed.add(ask);
      become({ isAsked: false, failures: failures + 1 });
      return false;
    }
  };
  function Later({ meanwhile, missed = usually, ...props }: P & LaterProps): ReactNode {
    const { part, isAsked, failures } = useSyncExternalStore(subscribe, get);
    useEffect(() => void ask(), []);
    if (part !== undefined) {
      const Part = part as ComponentType<object>;
      return <Part {...props} />;
    }
    if (failures === 0) return meanwhile;
    if (missed === "nowhere") return null;
    // What can be closed is told how.
    const canClose = "close" in props && typeof props.close === "function";
    const close = canClose ? (props.close as () => void) : undefined;
    return (
      <>
        {missed === "inline" && meanwhile}
        <PartFailed missed={missed} isTrying={isAsked} failures={failures} again={ask} close={close} />
      </>
    );
  }
  return Object.assign(Later, { ask });
}
