import { useWords } from "../i18n/use.ts";
import { Link } from "../shared/link.tsx";
import { ROUTES } from "./routes.ts";
import { Settings } from "./settings.tsx";

/** Navigation at the left edge, or at the bottom of a narrow screen. */
export function Rail({ here }: { here: string }) {
  const words = useWords();
  return (
    <nav
      aria-label={words.navigation}
      className="flex shrink-0 items-center gap-1.5 border-line bg-surface max-[719px]:justify-around max-[719px]:border-t max-[719px]:px-2 max-[719px]:pt-1 max-[719px]:pb-[max(4px,env(safe-area-inset-bottom))] min-[720px]:w-19 min-[720px]:flex-col min-[720px]:border-r min-[720px]:py-3.5"
    >
      <img src="/icon.svg" alt="" className="mb-3 size-8 max-[719px]:hidden" />
      {ROUTES.filter(({ isAside }) => !isAside).map(({ path, label, shows, icon: Icon }) => (
        <Link key={path} href={path} aria-current={shows(here) ? "page" : undefined} className="rail-link">
          <Icon aria-hidden size={20} strokeWidth={1.8} />
          <span>{label(words)}</span>
        </Link>
      ))}
      <Settings />
    </nav>
  );
}
