// `{{name}}` in a saved prompt: whoever uses it is asked for it. Framework-free.

/** A longer one is no name. */
const NAME_CHARS_MAX = 60;
const PLACEHOLDER = new RegExp(`\\{\\{([^{}\\n]{1,${NAME_CHARS_MAX}})\\}\\}`, "g");

/** Each name once, in the order in which they first appear. */
export function placeholdersIn(text: string): string[] {
  const names = [...text.matchAll(PLACEHOLDER)].map(([, name = ""]) => name.trim());
  return [...new Set(names)].filter((name) => name !== "");
}

/** With what was said for each name, all at once: what is in an answer asks nothing. A name without an answer is left out. */
export function filledIn(text: string, answers: Readonly<Record<string, string>>): string {
  return text.replace(PLACEHOLDER, (whole, name: string) => {
    const key = name.trim();
    if (key === "") return whole;
    return Object.hasOwn(answers, key) ? (answers[key] ?? "") : "";
  });
}
