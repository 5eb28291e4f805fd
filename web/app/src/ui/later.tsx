import { type ComponentType, type ReactNode, useEffect, useSyncExternalStore } from "react";
import { Variable } from "../store.ts";
import { PartFailed } from "./part-failed.tsx";

/**
 * How a part that failed to load is reported: in the text, as a whole view, above the page (a dialog or a menu without a place in the
 * layout), or not at all, because the user has not requested it yet.
 */
export type Missed = "inline" | "view" | "above" | "nowhere";

interface LaterState<P> {
  part?: ComponentType<P>;
  isRequested: boolean;
  /** Failed attempts. */
  failures: number;
}

interface LaterProps {
  /** Placeholder while the part loads. */
  meanwhile?: ReactNode;
  missed?: Missed;
}

/** Failed parts, which are retried when the browser is back online. */
const failed = new Set<() => Promise<boolean>>();
globalThis.addEventListener?.("online", () => {
  for (const again of [...failed]) void again();
});

/**
 * A part of the page that is loaded on demand. Unlike with `lazy`, a loaded part is rendered at once: React shows a `Suspense` fallback
 * for at least 300 ms, and the content below would jump twice. A failed part is reported as `missed` says, and loaded again on request,
 * when it is opened again, or when the browser is back online.
 */
export function later<P extends object>(
  fetch: () => Promise<{ default: ComponentType<P> }>,
  usually: Missed = "inline",
) {
  const state = new Variable<LaterState<P>>({ isRequested: false, failures: 0 });
  /** Preloads the part. True: it is loaded. */
  const ask = async (): Promise<boolean> => {
    const { part, isRequested, failures } = state.get();
    if (isRequested || part !== undefined) return part !== undefined;
    state.set({ isRequested: true, failures });
    try {
      const fetched = await fetch();
      failed.delete(ask);
      state.set({ part: fetched.default, isRequested: false, failures: 0 });
      return true;
    } catch {
      failed.add(ask);
      state.set({ isRequested: false, failures: failures + 1 });
      return false;
    }
  };
  function Later({ meanwhile, missed = usually, ...props }: P & LaterProps): ReactNode {
    const { part, isRequested, failures } = useSyncExternalStore(state.subscribe, state.get);
    useEffect(() => void ask(), []);
    if (part !== undefined) {
      const Part = part as ComponentType<object>;
      return <Part {...props} />;
    }
    if (failures === 0) return meanwhile;
    if (missed === "nowhere") return null;
    // A part that can be closed gets its `close`.
    const canClose = "close" in props && typeof props.close === "function";
    const close = canClose ? (props.close as () => void) : undefined;
    return (
      <>
        {missed === "inline" && meanwhile}
        <PartFailed missed={missed} isTrying={isRequested} failures={failures} again={ask} close={close} />
      </>
    );
  }
  return Object.assign(Later, { ask });
}
