// `{{name}}` in a saved prompt is a placeholder that its user fills in. Framework-free.

/** A longer text in braces is not a placeholder. */
const NAME_CHARS_MAX = 60;
const PLACEHOLDER = new RegExp(`\\{\\{([^{}\\n]{1,${NAME_CHARS_MAX}})\\}\\}`, "g");

/** Unique names in the order of their first occurrence. */
export function placeholdersIn(text: string): string[] {
  const names = [...text.matchAll(PLACEHOLDER)].map(([, name = ""]) => name.trim());
  return [...new Set(names)].filter((name) => name !== "");
}

/** Replaces all placeholders at once: braces in an answer are not placeholders. Names without an answer become empty. */
export function filledIn(text: string, answers: Readonly<Record<string, string>>): string {
  return text.replace(PLACEHOLDER, (whole, name: string) => {
    const key = name.trim();
    if (key === "") return whole;
    return Object.hasOwn(answers, key) ? (answers[key] ?? "") : "";
  });
}
