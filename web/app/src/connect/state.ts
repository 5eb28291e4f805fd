// How far an upstream is from being used, and what an agent with one of its models is called. Framework-free.

import type { AgentInfo, KnownUpstream, UpstreamInfo } from "@throughline/client";

/** One that can be chosen: known by name, or wherever somebody says it is. */
export interface Row extends KnownUpstream {
  isOwn?: true;
  /** Its address can be forgotten; what the configuration says cannot. */
  isStored?: boolean;
}

/** What the script is called that answers where no model is; it is nobody's own. */
const DEMO = "demo";

/** The nearest first. */
const STATES = ["connected", "here", "environment", "key", "away"] as const;
export type State = (typeof STATES)[number];

export function stateOf({ connected, key, key_from, answers }: KnownUpstream): State {
  if (answers === false) return "away";
  if (connected) return "connected";
  if (answers) return "here";
  return key === "missing" ? "key" : key_from === "environment" ? "environment" : "connected";
}

/** All that there are, the nearest first; of those as near, the ones of one's own. */
export function rowsOf(known: readonly KnownUpstream[], used: readonly UpstreamInfo[]): Row[] {
  const names = new Set([DEMO, ...known.map(({ name }) => name)]);
  const own = used
    .filter(({ name }) => !names.has(name))
    .map(({ models: _, address, is_stored, ...rest }): Row => {
      const [title, note] = [rest.name, address ?? ""];
      return {
        ...rest,
        title,
        note,
        address: note,
        connected: rest.key !== "missing",
        isOwn: true,
        isStored: is_stored === true,
      };
    });
  return [...own, ...known].sort(byState);
}

function byState(a: KnownUpstream, b: KnownUpstream): number {
  return STATES.indexOf(stateOf(a)) - STATES.indexOf(stateOf(b));
}

/** `qwen3:8b` → `qwen3-8b`; not as an agent of the configuration file, which nobody can change here. */
export function agentName(upstream: string, model: string, agents: readonly AgentInfo[]): string {
  const name = model
    .replace(/^.*\//, "")
    .replace(/[^\w.-]+|^\./g, "-")
    .slice(0, 48);
  const isTaken = agents.some((agent) => agent.name === name && agent.read_only);
  return isTaken ? `${name}-${upstream}`.slice(0, 64) : name;
}
