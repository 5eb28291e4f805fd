// Address of the tester: a tool, and the arguments for its form. They are in the hash, which no server gets and no log keeps:
// arguments may be private.

export const TESTER = "/tester";

/** Address of a tool in the tester, with the arguments of a call if there was one. */
export function testerAddress(tool: string, args?: Readonly<Record<string, unknown>>): string {
  const words = new URLSearchParams({ tool });
  if (args !== undefined) words.set("arguments", JSON.stringify(args));
  return `${TESTER}#${words}`;
}
