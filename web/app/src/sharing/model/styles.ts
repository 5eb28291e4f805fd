// The styles of the page for a standalone document: without external fonts, in the theme of the system.
// Framework-free.

const DARK = /(:root)?\[data-theme="?dark"?\]/;
const EVERY_DARK = new RegExp(DARK, "g");

/** The page does not scroll, but its parts do; a document scrolls as a whole. */
const OF_A_DOCUMENT = `
html, body { height: auto; overflow: auto; }
summary { cursor: pointer; }
.card > summary { list-style: none; }
.card > summary::-webkit-details-marker { display: none; }
@media print { details { break-inside: avoid; } }
`;

export function styleSheet(of: Document): string {
  const rules: string[] = [];
  for (const sheet of of.styleSheets) rules.push(...rulesOf(sheet.cssRules));
  return rules.join("\n") + OF_A_DOCUMENT;
}

function rulesOf(rules: CSSRuleList): string[] {
  return Array.from(rules).flatMap((rule) => {
    if (rule instanceof CSSFontFaceRule) return [];
    if (rule instanceof CSSStyleRule && DARK.test(rule.selectorText)) return [byNight(rule.cssText)];
    // Layers and media queries contain rules.
    if ("cssRules" in rule && !(rule instanceof CSSStyleRule) && !(rule instanceof CSSKeyframesRule)) {
      const inner = rulesOf((rule as CSSGroupingRule).cssRules).join("\n");
      const head = rule.cssText.slice(0, rule.cssText.indexOf("{"));
      return [`${head}{\n${inner}\n}`];
    }
    return [rule.cssText];
  });
}

/** Replaces the chosen theme by that of the system. */
function byNight(text: string): string {
  return `@media (prefers-color-scheme: dark) {\n${text.replace(EVERY_DARK, ":root")}\n}`;
}
