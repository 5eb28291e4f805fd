import { folded } from "@throughline/json";
import { useState } from "react";
import { useWords } from "../i18n/use.ts";

export interface Item {
  id: string;
  label: string;
  note?: string | undefined;
  isCurrent?: boolean;
}

interface RowsProps {
  items: readonly Item[];
  /** Label of the search field; absent = no search. */
  hint?: string;
  /** The typed text can be chosen, too. */
  isOpen?: boolean;
  choose(id: string): void;
}

/** A list of choices. */
export function Rows({ items, hint, isOpen, choose }: RowsProps) {
  const page = useWords();
  const [query, setQuery] = useState("");
  const wanted = query.trim();
  const fits = items.filter(({ id, label }) => folded(`${id} ${label}`).includes(folded(wanted)));
  if (isOpen && wanted && !items.some(({ id }) => id === wanted)) fits.push({ id: wanted, label: wanted });
  return (
    <>
      {hint && (
        <input
          type="search"
          className="field"
          value={query}
          placeholder={hint}
          aria-label={hint}
          onChange={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.nativeEvent.isComposing) return;
            event.preventDefault();
            const [only, another] = fits;
            if (wanted && only && !another) choose(only.id);
          }}
        />
      )}
      <ul>
        {fits.map(({ id, label, note, isCurrent }) => (
          <li key={id}>
            <button type="button" aria-current={isCurrent} onClick={() => choose(id)}>
              <b>{label}</b>
              <small>{note}</small>
            </button>
          </li>
        ))}
      </ul>
      {fits.length === 0 && (wanted || !isOpen) && <p>{page.noResults}</p>}
    </>
  );
}
