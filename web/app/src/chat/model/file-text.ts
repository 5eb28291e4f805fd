// Files as text in a message: each a part with labels, so that any model knows where it begins and ends, and the page shows it
// as a file. docs/page.md describes the format. Framework-free.

export interface FileText {
  name: string;
  text: string;
  /** Pages of a PDF that are included, `1-12 of 40`. */
  pages?: string | undefined;
}

/** The file as a part of a message. */
export function labelled({ name, text, pages }: FileText): string {
  // Content of a file must not look like the end label.
  let tag = "file";
  while (text.includes(`</${tag}>`)) tag += "_";
  const about = pages === undefined ? "" : ` pages="${escaped(pages)}"`;
  return `<${tag} name="${escaped(name)}"${about}>\n${text}\n</${tag}>`;
}

/** The file in a part of a message; `undefined`: not a file. */
export function fileIn(part: string): FileText | undefined {
  const [, , name, pages, text] =
    /^<(file_*) name="([^"\n]*)"(?: pages="([^"\n]*)")?>\n([\s\S]*)\n<\/\1>$/.exec(part) ?? [];
  if (name === undefined || text === undefined) return undefined;
  return { name: unescaped(name), text, pages: pages === undefined ? undefined : unescaped(pages) };
}

const ENTITIES = { "&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;" } as const;

function escaped(text: string): string {
  return text.replace(/\s+/g, " ").replace(/[&"<>]/g, (char) => ENTITIES[char as keyof typeof ENTITIES]);
}

function unescaped(text: string): string {
  const chars = new Map(Object.entries(ENTITIES).map(([char, entity]) => [entity as string, char]));
  return text.replace(/&(?:amp|quot|lt|gt);/g, (entity) => chars.get(entity) ?? entity);
}
