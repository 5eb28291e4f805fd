// `&nbsp;` and alike, as the characters that they name. The browser knows all names; it is asked for one name at a time.

const ENTITY = /&(?:#x[\da-f]{1,6}|#\d{1,7}|[a-z][a-z\d]{1,31});/gi;
const known = new Map<string, string>();

export function decoded(text: string): string {
  return text.includes("&") ? text.replace(ENTITY, character) : text;
}

function character(entity: string): string {
  const before = known.get(entity);
  if (before !== undefined) return before;
  // Nothing but an entity comes here, and a document that is parsed so runs and fetches nothing.
  const found = new DOMParser().parseFromString(entity, "text/html").documentElement.textContent ?? entity;
  if (known.size < NAMES_MAX) known.set(entity, found);
  return found;
}

/** Names that are remembered. */
const NAMES_MAX = 3_000;
