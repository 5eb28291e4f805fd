import { useEffect, useState } from "react";

/** So long a text rests before it is looked for. */
const REST_MS = 200;

interface SearchProps {
  /** What is looked for now. */
  wanted: string;
  label: string;
  look(text: string): void;
}

/** What is typed is looked for once it rests. */
export function Search({ wanted, label, look }: SearchProps) {
  const [text, setText] = useState(wanted);
  // Another address, another text: somebody went back, or cleared everything.
  useEffect(() => setText(wanted), [wanted]);
  useEffect(() => {
    const typed = text.trim();
    if (typed === wanted) return undefined;
    const timer = setTimeout(() => look(typed), REST_MS);
    return () => clearTimeout(timer);
  }, [text, wanted, look]);
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
