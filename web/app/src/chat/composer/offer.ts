import { type AgentInfo, ApiError, type Throughline } from "@throughline/client";
import { useEffect, useState, useSyncExternalStore } from "react";
import { answering } from "../../preferences.ts";
import { useClient } from "../../session/context.tsx";
import { mode, model } from "./mode.ts";

/** Prompt, tools and tokens that the agent would use for the next message. */
export interface Offer {
  agent: string;
  /** Model of the agent, as `upstream/model`. */
  model: string;
  tools: number;
  tokens: number;
  /** Other agents. */
  agents: readonly AgentInfo[];
}

/** Sources of tools may still be discovered right after the server starts: it is requested again after these times. */
export const DISCOVERY_MS: readonly number[] = [1_500, 4_500, 15_000];

/** Tools and tokens of the current agent in the chosen mode; loaded again for each `turn`. */
export function useOffer(turn: string | undefined): Offer | undefined {
  const client = useClient();
  const chosen = useSyncExternalStore(mode.subscribe, mode.get);
  const wanted = useSyncExternalStore(answering.subscribe, answering.get);
  const [offer, setOffer] = useState<Offer>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const timers = DISCOVERY_MS.map((ms) => setTimeout(() => setAttempt((attempt) => attempt + 1), ms));
    return () => timers.forEach(clearTimeout);
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt or turn asks the same
  useEffect(() => {
    const leave = new AbortController();
    const { signal } = leave;
    const ask = async (): Promise<void> => {
      const { items } = await client.call("GET /v1/agents", { signal });
      const agents = items.filter((one) => one.fault == null);
      const listed = agents.find((one) => one.name === wanted);
      // The agent was deleted, or cannot be used any more.
      if (listed === undefined && wanted !== "") answering.set("");
      const answers = listed ?? items.find((one) => one.is_default);
      if (answers === undefined) return;
      const query = chosen === "" ? {} : { mode: chosen };
      const { tokens } = await client.call("GET /v1/agents/{agent}/prompt", {
        path: { agent: answers.name },
        query,
        signal,
      });
      const tools = tokens.sources.reduce((sum, source) => sum + source.tools, 0);
      setOffer({ agent: answers.name, model: answers.model ?? "", tools, tokens: tokens.total, agents });
    };
    // A missing number is no error.
    ask().catch(() => undefined);
    void checkModel(client, signal);
    return () => leave.abort();
  }, [client, chosen, wanted, turn, attempt]);
  return offer;
}

/** Resets a chosen model that is no longer available. */
async function checkModel(client: Throughline, signal: AbortSignal): Promise<void> {
  const id = model.get();
  if (id === "") return;
  try {
    await client.call("GET /v1/models/{id}", { path: { id }, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404 && model.get() === id) model.set("");
  }
}
