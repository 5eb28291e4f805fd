import { useEffect, useState } from "react";

/** Pause after the last keystroke before a search. */
const REST_MS = 200;

interface SearchProps {
  /** The current search text. */
  wanted: string;
  label: string;
  onSearch(text: string): void;
}

/** Search field that applies the text after a pause. */
export function Search({ wanted, label, onSearch }: SearchProps) {
  const [text, setText] = useState(wanted);
  // The address has changed: by going back, or by clearing the filter.
  useEffect(() => setText(wanted), [wanted]);
  useEffect(() => {
    const typed = text.trim();
    if (typed === wanted) return undefined;
    const timer = setTimeout(() => onSearch(typed), REST_MS);
    return () => clearTimeout(timer);
  }, [text, wanted, onSearch]);
  return (
    <input
      type="search"
      dir="auto"
      value={text}
      placeholder={label}
      aria-label={label}
      onChange={(event) => setText(event.currentTarget.value)}
      className="field h-8 min-[520px]:!w-60"
    />
  );
}
