// Checks whether the server has a newer page. Framework-free.

/** `away`: no response, or not from the server. */
export type ServedPage = "this" | "newer" | "away";

let asked: Promise<ServedPage> | undefined;

/** Compares pages by their entry scripts. */
export function servedPage(): Promise<ServedPage> {
  asked ??= ask()
    .catch((): ServedPage => "away")
    .finally(() => {
      asked = undefined;
    });
  return asked;
}

async function ask(): Promise<ServedPage> {
  const response = await fetch("/", { cache: "no-store", headers: { accept: "text/html" } });
  const html = response.ok ? await response.text() : "";
  if (!html.includes('id="root"')) return "away";
  const entry = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  return !entry || html.includes(entry) ? "this" : "newer";
}
