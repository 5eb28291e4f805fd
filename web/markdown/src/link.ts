// Safe link targets.

const SCHEMES: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);

/** An absolute URL that a browser may open; `undefined`: shown as text. */
export function safeHref(href: string): URL | undefined {
  if (!URL.canParse(href)) return undefined;
  const url = new URL(href);
  return SCHEMES.has(url.protocol) ? url : undefined;
}
