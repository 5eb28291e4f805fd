import {
  Activity,
  Bot,
  FlaskConical,
  History,
  type LucideIcon,
  MessageSquare,
  Settings2,
} from "lucide-react";
import type { ComponentType, ReactNode } from "react";
import type { Words } from "../i18n/words.ts";
import { later } from "../ui/later.tsx";

/** A view of the page, loaded when it is first shown. */
export interface Route {
  /** Path of its link in the rail. */
  path: string;
  /** Whether the view shows this path. */
  shows(path: string): boolean;
  label(words: Words): string;
  icon: LucideIcon;
  view: ComponentType<{ meanwhile?: ReactNode }>;
  /** Without a link in the rail. */
  isAside?: true;
}

/** Views in the order of the rail. */
export const ROUTES: readonly Route[] = [
  {
    path: "/",
    shows: (path) => path === "/" || path.startsWith("/c/"),
    label: (words) => words.chat,
    icon: MessageSquare,
    view: later(() => import("../chat/view.tsx"), "view"),
  },
  {
    path: "/tester",
    shows: (path) => path === "/tester",
    label: (words) => words.tester,
    icon: FlaskConical,
    view: later(() => import("../tester/view.tsx"), "view"),
  },
  {
    path: "/agents",
    shows: (path) => path === "/agents",
    label: (words) => words.agents,
    icon: Bot,
    view: later(() => import("../agents/view.tsx"), "view"),
  },
  {
    path: "/history",
    shows: (path) => path === "/history" || path === "/history/calls",
    label: (words) => words.history,
    icon: History,
    view: later(() => import("../history/view.tsx"), "view"),
  },
  {
    // `/metrics` is the endpoint of Prometheus.
    path: "/stats",
    shows: (path) => path === "/stats",
    label: (words) => words.metrics,
    icon: Activity,
    view: later(() => import("../metrics/view.tsx"), "view"),
  },
  {
    path: "/settings",
    shows: (path) => path === "/settings",
    label: (words) => words.settings,
    icon: Settings2,
    view: later(() => import("../settings/view.tsx"), "view"),
    isAside: true,
  },
];
