// What page the server has: the one that is shown, or a newer one. Framework-free.

/** `away`: nobody answers, or somebody who is not the server. */
export type ServedPage = "this" | "newer" | "away";

let asked: Promise<ServedPage> | undefined;

/** Pages are told apart by the scripts that they begin with. */
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
