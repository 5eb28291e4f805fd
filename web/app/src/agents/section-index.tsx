import { useAgentWords } from "./words.ts";

/** A section of the form. */
export interface IndexPart {
  name: string;
  label: string;
}

interface SectionIndexProps {
  parts: readonly IndexPart[];
  search: string;
  onSearch(text: string): void;
  /** Number of settings that match the search; absent: no search. */
  found: number | undefined;
}

/** The sections of the form, with a search over all settings. */
export function SectionIndex({ parts, search, onSearch, found }: SectionIndexProps) {
  const words = useAgentWords();
  const show = (name: string): void => {
    const part = document.getElementById(partId(name));
    part?.scrollIntoView({ block: "start" });
    part?.focus({ preventScroll: true });
  };
  return (
    <search className="agent-index">
      <input
        type="search"
        value={search}
        placeholder={words.searchSettings}
        aria-label={words.searchSettings}
        onChange={(event) => onSearch(event.currentTarget.value)}
        className="field h-8"
      />
      <nav aria-label={words.sections}>
        {parts.map(({ name, label }) => (
          <button key={name} type="button" className="chip" onClick={() => show(name)}>
            {label}
          </button>
        ))}
      </nav>
      <p role="status" className={found === undefined ? "sr-only" : "text-[12.5px] text-muted"}>
        {found !== undefined && words.found(found)}
      </p>
    </search>
  );
}

export function partId(name: string): string {
  return `agent-part-${name}`;
}
