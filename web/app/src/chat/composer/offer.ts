import { useEffect, useState, useSyncExternalStore } from "react";
import { answering } from "../../preferences.ts";
import { useClient } from "../../session/context.tsx";
import { mode } from "./mode.ts";

/** What the model is told before anybody says anything. */
export interface Offer {
  /** As `upstream/model`. */
  model: string;
  tools: number;
  tokens: number;
}

/** Tools and tokens of the agent that answers, in the mode that is chosen. */
export function useOffer(): Offer | undefined {
  const client = useClient();
  const chosen = useSyncExternalStore(mode.subscribe, mode.get);
  const wanted = useSyncExternalStore(answering.subscribe, answering.get);
  const [offer, setOffer] = useState<Offer>();
  useEffect(() => {
    const leave = new AbortController();
    const { signal } = leave;
    const ask = async (): Promise<void> => {
      const { items } = await client.call("GET /v1/agents", { signal });
      const own = items.find((one) => one.name === wanted && one.fault == null);
      // It was taken away, or cannot be used any more.
      if (own === undefined && wanted !== "") answering.set("");
      const answers = own ?? items.find((one) => one.is_default);
      if (answers === undefined) return;
      const query = chosen === "" ? {} : { mode: chosen };
      const { tokens } = await client.call("GET /v1/agents/{agent}/prompt", {
        path: { agent: answers.name },
        query,
        signal,
      });
      const tools = tokens.sources.reduce((sum, source) => sum + source.tools, 0);
      setOffer({ model: answers.model ?? "", tools, tokens: tokens.total });
    };
    // It is no more than a figure.
    ask().catch(() => undefined);
    return () => leave.abort();
  }, [client, chosen, wanted]);
  return offer;
}
