// What a text that begins with `/` or `@` may become. Framework-free.

import type { AgentInfo } from "@throughline/client";
import { folded } from "@throughline/json";

export const COMMANDS = [
  "new",
  "retry",
  "model",
  "agent",
  "system",
  "prompts",
  "save",
  "export",
  "connect",
] as const;
export type Command = (typeof COMMANDS)[number];

/** A command is asked for, or somebody to answer; nothing else was typed yet. */
export function isOpening(text: string): boolean {
  return /^[/@]\S*$/.test(text);
}

/** Commands that begin like this; `isBegun`: whether there is an answer to act upon. */
export function commandsFor(text: string, isBegun: boolean): Command[] {
  const typed = folded(text.slice(1));
  const needsAnswer: readonly Command[] = ["retry", "save", "export"];
  return COMMANDS.filter((name) => name.startsWith(typed) && (isBegun || !needsAnswer.includes(name)));
}

export function agentsFor(text: string, agents: readonly AgentInfo[]): AgentInfo[] {
  const typed = folded(text.slice(1));
  return agents.filter(({ name }) => folded(name).includes(typed));
}

/** `@careful How are you?`: who is to answer this one message, and the message. */
export function addressed(
  text: string,
  agents: readonly AgentInfo[],
): { agent: string | undefined; text: string } {
  const [, name, rest] = /^@(\S+)\s+([\s\S]*\S[\s\S]*)$/.exec(text) ?? [];
  const agent = agents.find((agent) => agent.name === name);
  return agent === undefined || rest === undefined
    ? { agent: undefined, text }
    : { agent: agent.name, text: rest };
}
