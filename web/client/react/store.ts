import type { Block, Head, Place, TurnStore } from "@throughline/client";
import { useCallback, useSyncExternalStore } from "react";

/** The message of a turn without its blocks. */
export function useHead(store: TurnStore): Head {
  return useSyncExternalStore(store.subscribeHead, store.head);
}

/** Which blocks there are. */
export function useOutline(store: TurnStore): readonly Place[] {
  return useSyncExternalStore(store.subscribeOutline, store.outline);
}

/** One block of a turn, as it is. */
export function useBlock(store: TurnStore, at: number): Readonly<Block> | undefined {
  const subscribe = useCallback((listener: () => void) => store.subscribeBlock(at, listener), [store, at]);
  const get = useCallback(() => store.block(at), [store, at]);
  return useSyncExternalStore(subscribe, get);
}
