// What the address of the tester asks for; `../address.ts` makes such addresses, also for views that need no more of this one.
// Framework-free.

import { objectFrom } from "./draft.ts";

/** What an address asks for. */
export interface Asked {
  tool: string | undefined;
  arguments: Record<string, unknown> | undefined;
}

/** What stands behind `#`; what is no JSON object is as if it were not there. */
export function askedBy(hash: string): Asked {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const args = words.get("arguments");
  return { tool: words.get("tool") ?? undefined, arguments: args === null ? undefined : objectFrom(args) };
}
