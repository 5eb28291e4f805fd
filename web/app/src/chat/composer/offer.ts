import { useEffect, useState, useSyncExternalStore } from "react";
import { useClient } from "../../session/context.tsx";
import { mode } from "./mode.ts";

/** What the model is told before anybody says anything. */
export interface Offer {
  tools: number;
  tokens: number;
}

/** Tools and tokens of the agent that answers, in the mode that is chosen. */
export function useOffer(): Offer | undefined {
  const client = useClient();
  const chosen = useSyncExternalStore(mode.subscribe, mode.get);
  const [offer, setOffer] = useState<Offer>();
  useEffect(() => {
    const leave = new AbortController();
    const { signal } = leave;
    const ask = async (): Promise<void> => {
      const { items } = await client.call("GET /v1/agents", { signal });
      const agent = items.find((one) => one.is_default)?.name;
      if (agent === undefined) return;
      const query = chosen === "" ? {} : { mode: chosen };
      const { tokens } = await client.call("GET /v1/agents/{agent}/prompt", {
        path: { agent },
        query,
        signal,
      });
      const tools = tokens.sources.reduce((sum, source) => sum + source.tools, 0);
      setOffer({ tools, tokens: tokens.total });
    };
    // It is no more than a figure.
    ask().catch(() => undefined);
    return () => leave.abort();
  }, [client, chosen]);
  return offer;
}
