// Completions of a text that begins with `/` or `@`. Framework-free.

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

/** True for the beginning of a command or a mention, with nothing else typed yet. */
export function isOpening(text: string): boolean {
  return /^[/@]\S*$/.test(text);
}

/** Commands with this prefix; `isBegun`: the conversation has an answer to act upon. */
export function commandsFor(text: string, isBegun: boolean): Command[] {
  const typed = folded(text.slice(1));
  const needsAnswer: readonly Command[] = ["retry", "save", "export"];
  return COMMANDS.filter((name) => name.startsWith(typed) && (isBegun || !needsAnswer.includes(name)));
}

export function agentsFor(text: string, agents: readonly AgentInfo[]): AgentInfo[] {
  const typed = folded(text.slice(1));
  return agents.filter(({ name }) => folded(name).includes(typed));
}

/** Splits `@careful How are you?` into the agent of this message and the text. */
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
