import { useCallback } from "react";
import { useClient } from "../../session/context.tsx";
import { openModels } from "../../shared/open-models.ts";
import { useRequest } from "../../ui/use-request.ts";
import type { Offer } from "../composer/offer.ts";
import { fitting } from "./fitting.ts";
import { useFirstWords } from "./words.ts";

/** Suggested questions for the current model and tools. */
export default function Suggestions({ offer, ask }: { offer: Offer; ask(prompt: string): void }) {
  const words = useFirstWords();
  const client = useClient();
  const { agent, model, tools: offered } = offer;
  const found = useRequest(
    useCallback(
      async (signal: AbortSignal) => {
        // Tools were discovered since: the suggestions are chosen again.
        void offered;
        return model === "demo"
          ? { tools: [] }
          : await client.call("GET /v1/tools", { query: { agent }, signal });
      },
      [client, agent, model, offered],
    ),
  );
  // Without a list of tools, general suggestions remain.
  const tools = found.value?.tools ?? (found.error === undefined ? undefined : []);
  if (tools === undefined) return null;
  return (
    <>
      <ul aria-label={words.examples}>
        {fitting(model, tools).map((name) => {
          const { title, prompt } = words.suggestions[name];
          return (
            <li key={name}>
              <button type="button" onClick={() => ask(prompt)}>
                <b>{title}</b>
                <span>{prompt}</span>
              </button>
            </li>
          );
        })}
      </ul>
      {model === "demo" && (
        <div className="demo">
          <p>{words.demoModel}</p>
          <button type="button" className="button" onClick={openModels}>
            {words.connect}
          </button>
        </div>
      )}
    </>
  );
}
