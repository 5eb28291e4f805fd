// Files as text in a message: a part of their own, labelled so that any model knows where they begin and end, and so that the page shows
// them as files. docs/page.md describes the form. Framework-free.

export interface FileText {
  name: string;
  text: string;
  /** Of a PDF: the pages that are here, `1-12 of 40`. */
  pages?: string | undefined;
}

/** As a part of a message. */
export function labelled({ name, text, pages }: FileText): string {
  // What is in a file must not look like its end.
  let tag = "file";
  while (text.includes(`</${tag}>`)) tag += "_";
  const about = pages === undefined ? "" : ` pages="${escaped(pages)}"`;
  return `<${tag} name="${escaped(name)}"${about}>\n${text}\n</${tag}>`;
}

/** `undefined`: this part of a message is no file. */
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
