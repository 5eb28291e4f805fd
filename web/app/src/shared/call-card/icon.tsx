import {
  Calculator,
  Calendar,
  Clock,
  CloudSun,
  Database,
  File,
  Globe,
  type LucideIcon,
  Mail,
  Plug,
  Search,
  Smile,
  Terminal,
  Wrench,
} from "lucide-react";

/** Icon by the name of a tool; the first match wins. */
const ICONS: readonly (readonly [RegExp, LucideIcon])[] = [
  [/^live2d\.|avatar|expression/, Smile],
  [/calendar|meeting|schedule/, Calendar],
  [/weather|forecast/, CloudSun],
  [/search|grep|find/, Search],
  [/^time\.|clock|date/, Clock],
  [/^http\.|fetch|web|browser|url/, Globe],
  [/^files?\.|file|read|write/, File],
  [/mail|message/, Mail],
  [/sql|data|store/, Database],
  [/shell|command|exec|run/, Terminal],
  [/calc|sum|math/, Calculator],
];

export function ToolIcon({ name, source }: { name: string; source: string | undefined }) {
  const found = ICONS.find(([pattern]) => pattern.test(name))?.[1];
  const Icon = found ?? (source?.startsWith("mcp") ? Plug : Wrench);
  return <Icon aria-hidden size={16} className="flex-none text-muted" />;
}
