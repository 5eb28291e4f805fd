// Whether the server has a newer page than the one that is shown. Framework-free.

let asked: Promise<boolean> | undefined;

/** True if the page of the server begins with other scripts; false as well if nobody can tell. */
export function isOutdated(): Promise<boolean> {
  asked ??= ask()
    .catch(() => false)
    .finally(() => {
      asked = undefined;
    });
  return asked;
}

async function ask(): Promise<boolean> {
  const entry = document.querySelector('script[type="module"][src]')?.getAttribute("src");
  if (!entry) return false;
  const response = await fetch("/", { cache: "no-store", headers: { accept: "text/html" } });
  if (!response.ok) return false;
  const html = await response.text();
  return html.includes('id="root"') && !html.includes(entry);
}
