import { useSyncExternalStore } from "react";
import { onPath, path } from "../shared/router.ts";
import { later } from "../ui/later.tsx";
import { CALLS } from "./model/filter.ts";
import { TurnsView } from "./turns-view.tsx";

const CallsView = later(async () => ({ default: (await import("./calls-view.tsx")).CallsView }), "view");

/** History of turns and calls. */
export default function HistoryView() {
  const here = useSyncExternalStore(onPath, path);
  if (here !== CALLS) return <TurnsView />;
  return <CallsView />;
}
