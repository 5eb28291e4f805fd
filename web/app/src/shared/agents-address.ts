// The address of an agent in this view.

export const AGENTS = "/agents";

export function agentAddress(name: string): string {
  return `${AGENTS}?${new URLSearchParams({ agent: name })}`;
}

/** The agent that an address names. */
export function agentIn(search: string): string | undefined {
  return new URLSearchParams(search).get("agent") ?? undefined;
}
