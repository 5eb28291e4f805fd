// Parses addresses of the tester; `../address.ts` makes them, also for views that do not load this module.
// Framework-free.

import { objectFrom } from "../../shared/schema-form/draft.ts";

/** Tool and arguments in an address. */
export interface TesterLocation {
  tool: string | undefined;
  arguments: Record<string, unknown> | undefined;
}

/** Parses the hash; arguments that are not a JSON object are ignored. */
export function testerLocationOf(hash: string): TesterLocation {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const args = words.get("arguments");
  return { tool: words.get("tool") ?? undefined, arguments: args === null ? undefined : objectFrom(args) };
}
