// Where links lead.

const SCHEMES: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);

/** An absolute address that a browser may be sent to, as the browser reads it; `undefined`: it is shown as text. */
export function safeHref(href: string): URL | undefined {
  if (!URL.canParse(href)) return undefined;
  const url = new URL(href);
  return SCHEMES.has(url.protocol) ? url : undefined;
}
