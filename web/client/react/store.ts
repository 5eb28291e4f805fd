import type { Block, BlockPosition, MessageHead, TurnStore } from "@throughline/client";
import { useCallback, useSyncExternalStore } from "react";

/** The message of a turn without its blocks. */
export function useHead(store: TurnStore): MessageHead {
  return useSyncExternalStore(store.subscribeHead, store.head);
}

/** The positions of all blocks of a turn. */
export function useOutline(store: TurnStore): readonly BlockPosition[] {
  return useSyncExternalStore(store.subscribeOutline, store.outline);
}

/**
 * One block of a turn.
 *
 * `show` gets each change first. If it returns true, it has shown the change by itself, and the component does not render: for text
 * that grows many times per second. Pass the same function each time.
 */
export function useBlock(
  store: TurnStore,
  at: number,
  show?: (block: Readonly<Block>) => boolean,
): Readonly<Block> | undefined {
  const subscribe = useCallback(
    (listener: () => void) =>
      store.subscribeBlock(at, () => {
        const block = store.block(at);
        if (block === undefined || !show?.(block)) listener();
      }),
    [store, at, show],
  );
  const get = useCallback(() => store.block(at), [store, at]);
  return useSyncExternalStore(subscribe, get);
}
