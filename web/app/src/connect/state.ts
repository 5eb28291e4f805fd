// State of upstreams, and names of agents for their models. Framework-free.

import type { AgentInfo, KnownUpstream, UpstreamInfo } from "@throughline/client";

/** A selectable upstream: a known or a custom one. */
export interface Row extends KnownUpstream {
  isOwn?: true;
  /** Stored by the user, so it can be removed; those of the configuration file cannot. */
  isStored?: boolean;
}

/** Name of the scripted demo upstream, which is never listed as one's own. */
const DEMO = "demo";

/** States by how little is left to do. */
const STATES = ["connected", "here", "environment", "key", "away"] as const;
export type State = (typeof STATES)[number];

export function stateOf({ connected, key, key_from, answers }: KnownUpstream): State {
  if (answers === false) return "away";
  if (connected) return "connected";
  if (answers) return "here";
  return key === "missing" ? "key" : key_from === "environment" ? "environment" : "connected";
}

/** All upstreams by state; custom ones first within a state. */
export function rowsOf(known: readonly KnownUpstream[], used: readonly UpstreamInfo[]): Row[] {
  const names = new Set([DEMO, ...known.map(({ name }) => name)]);
  const texts = used
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
  return [...texts, ...known].sort(byState);
}

function byState(a: KnownUpstream, b: KnownUpstream): number {
  return STATES.indexOf(stateOf(a)) - STATES.indexOf(stateOf(b));
}

/** Name of an agent: `qwen3:8b` → `qwen3-8b`; never that of an agent in the configuration file, which is read-only here. */
export function agentName(upstream: string, model: string, agents: readonly AgentInfo[]): string {
  const name = model
    .replace(/^.*\//, "")
    .replace(/[^\w.-]+|^\./g, "-")
    .slice(0, 48);
  const isTaken = agents.some((agent) => agent.name === name && agent.read_only);
  return isTaken ? `${name}-${upstream}`.slice(0, 64) : name;
}
