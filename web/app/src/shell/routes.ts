import { Activity, Bot, FlaskConical, History, type LucideIcon, MessageSquare } from "lucide-react";
import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import type { Words } from "../i18n/words.ts";

/** A view of the page. Each is a file of its own that is fetched when it is first shown. */
export interface Route {
  /** Where its link in the rail leads. */
  path: string;
  /** Whether it shows this path. */
  shows(path: string): boolean;
  label(words: Words): string;
  icon: LucideIcon;
  view: LazyExoticComponent<ComponentType>;
}

/** In the order of the rail. A view that does not exist has no row here, and so no link. */
export const ROUTES: readonly Route[] = [
  {
    path: "/",
    shows: (path) => path === "/" || path.startsWith("/c/"),
    label: (words) => words.chat,
    icon: MessageSquare,
    view: lazy(() => import("../chat/view.tsx")),
  },
  {
    path: "/tester",
    shows: (path) => path === "/tester",
    label: (words) => words.tester,
    icon: FlaskConical,
    view: lazy(() => import("../tester/view.tsx")),
  },
  {
    path: "/agents",
    shows: (path) => path === "/agents",
    label: (words) => words.agents,
    icon: Bot,
    view: lazy(() => import("../agents/view.tsx")),
  },
  {
    path: "/history",
    shows: (path) => path === "/history",
    label: (words) => words.history,
    icon: History,
    view: lazy(() => import("../history/view.tsx")),
  },
  {
    // `/metrics` is what Prometheus asks for.
    path: "/stats",
    shows: (path) => path === "/stats",
    label: (words) => words.metrics,
    icon: Activity,
    view: lazy(() => import("../metrics/view.tsx")),
  },
];
