// Checks whether the server has a newer page. Framework-free.

/** `away`: no response, or not from the server. */
export type ServedPage = "this" | "newer" | "away";

let checking: Promise<ServedPage> | undefined;

/** Compares pages by their entry scripts. */
export function servedPage(): Promise<ServedPage> {
  checking ??= ask()
    .catch((): ServedPage => "away")
    .finally(() => {
      checking = undefined;
    });
  return checking;
}

async function ask(): Promise<ServedPage> {
  const response = await fetch("/", { cache: "no-store", headers: { accept: "text/html" } });
  const html = response.ok ? await response.text() : "";
  if (!html.includes('id="root"')) return "away";
  const entry = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  return !entry || html.includes(entry) ? "this" : "newer";
}
