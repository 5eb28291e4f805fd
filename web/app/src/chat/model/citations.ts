// Citations of upstreams, each in its own format. Framework-free.

export interface Source {
  readonly title: string;
  /** A web address. */
  readonly url: string | undefined;
  /** Quoted text, if the upstream has it. */
  readonly quote: string | undefined;
}

/** Depth limit of the search in a citation. */
const DEPTH_MAX = 4;

/** Unique sources in the order of their citations. */
export function sourcesOf(citations: readonly unknown[]): readonly Source[] {
  const found = new Map<string, Source>();
  for (const citation of citations) {
    const url = webAddress(textAt(citation, ["url", "uri"]));
    const name = textAt(citation, ["title", "document_title", "filename", "file_name", "name"]);
    const title = name ?? (url === undefined ? undefined : new URL(url).host);
    const key = url ?? title;
    if (title === undefined || key === undefined || found.has(key)) continue;
    found.set(key, { title, url, quote: textAt(citation, ["cited_text", "quote", "snippet"]) });
  }
  return [...found.values()];
}

/** The first of these members, at any depth. */
function textAt(value: unknown, names: readonly string[], depth = 0): string | undefined {
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) return undefined;
  const members = new Map<string, unknown>(Object.entries(value));
  for (const name of names) {
    const member = members.get(name);
    if (typeof member === "string" && member.trim() !== "") return member;
  }
  for (const member of members.values()) {
    const found = textAt(member, names, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Only web addresses become links. */
function webAddress(url: string | undefined): string | undefined {
  return url !== undefined && /^https?:\/\//i.test(url) && URL.canParse(url) ? url : undefined;
}
