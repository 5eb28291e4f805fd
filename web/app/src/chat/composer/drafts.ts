// Unsent drafts for each conversation, in this browser. Framework-free.

export const DRAFTS_KEY = "throughline.drafts";
/** The oldest drafts are dropped. */
export const DRAFTS_MAX = 20;
/** Longer drafts are not stored: the browser's storage is small. */
export const DRAFT_CHARS_MAX = 20_000;

type Drafts = Record<string, string>;

const nameOf = (conversation: string | undefined): string => conversation ?? "new";

/** Draft of a conversation; `undefined`: of the new one. */
export function draftOf(conversation: string | undefined): string {
  const draft: unknown = read()[nameOf(conversation)];
  return typeof draft === "string" ? draft : "";
}

export function keepDraft(conversation: string | undefined, text: string): void {
  const name = nameOf(conversation);
  const { [name]: before, ...others } = read();
  const isKept = text.trim() !== "" && text.length <= DRAFT_CHARS_MAX;
  if (!isKept && before === undefined) return;
  const kept = Object.entries(others).slice(isKept ? 1 - DRAFTS_MAX : -DRAFTS_MAX);
  try {
    localStorage.setItem(
      DRAFTS_KEY,
      JSON.stringify(Object.fromEntries(isKept ? [...kept, [name, text]] : kept)),
    );
  } catch {
    // The draft stays in the field while the page is open.
  }
}

function read(): Drafts {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(DRAFTS_KEY) ?? "{}");
    return stored !== null && typeof stored === "object" ? (stored as Drafts) : {};
  } catch {
    return {};
  }
}
