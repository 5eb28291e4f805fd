// The address of the tester: which tool, and what its form is filled in with. It stands behind `#`, which no server
// is sent and no log keeps: arguments may be private.

export const TESTER = "/tester";

/** Where a tool can be tried, with the arguments of a call if there was one. */
export function testerAddress(tool: string, args?: Readonly<Record<string, unknown>>): string {
  const words = new URLSearchParams({ tool });
  if (args !== undefined) words.set("arguments", JSON.stringify(args));
  return `${TESTER}#${words}`;
}
