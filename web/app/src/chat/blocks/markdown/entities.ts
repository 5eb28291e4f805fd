// HTML entities (`&nbsp;`) as characters. The browser's parser decodes them, one name at a time.

const ENTITY = /&(?:#x[\da-f]{1,6}|#\d{1,7}|[a-z][a-z\d]{1,31});/gi;
const known = new Map<string, string>();

export function decoded(text: string): string {
  return text.includes("&") ? text.replace(ENTITY, character) : text;
}

function character(entity: string): string {
  const before = known.get(entity);
  if (before !== undefined) return before;
  // Only an entity gets here, and a document that is parsed this way runs and loads nothing.
  const found = new DOMParser().parseFromString(entity, "text/html").documentElement.textContent ?? entity;
  if (known.size < NAMES_MAX) known.set(entity, found);
  return found;
}

/** Size of the cache. */
const NAMES_MAX = 3_000;
