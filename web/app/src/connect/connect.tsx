import { type AgentInfo, ApiError, type KnownUpstream } from "@throughline/client";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { useClient } from "../session/context.tsx";
import { Problem } from "./problem.tsx";
import { Rows } from "./rows.tsx";
import { agentName, stateOf } from "./state.ts";
import { useConnectWords } from "./words.ts";

interface ConnectProps {
  one: KnownUpstream;
  agents: readonly AgentInfo[];
  /** An agent answers with one of its models. */
  use(agent: string): void;
  forgotten(): void;
}

/** Its key, then one of its models: each is tried before it is kept. */
export function Connect({ one, agents, use, forgotten }: ConnectProps) {
  const words = useConnectWords();
  const client = useClient();
  const [id, wrong] = [useId(), useId()];
  const [key, setKey] = useState("");
  const [models, setModels] = useState<readonly string[]>();
  const [asked, setAsked] = useState<string>();
  const [failure, setFailure] = useState<unknown>();
  const leave = useRef<AbortController>(undefined);
  const form = useRef<HTMLFormElement>(null);

  const ask = async (model?: string): Promise<void> => {
    leave.current?.abort();
    leave.current = new AbortController();
    const { signal } = leave.current;
    setFailure(undefined);
    setAsked(model ?? one.title);
    const chosen = model && { model, agent: agentName(one.name, model, agents) };
    try {
      const answer = await client.call("POST /v1/upstreams/{upstream}/connect", {
        path: { upstream: one.name },
        body: { ...(key && { key }), ...chosen },
        signal,
      });
      if (answer.agent != null) return use(answer.agent);
      setKey("");
      setModels(answer.models);
    } catch (error) {
      if (signal.aborted) return;
      // It does not say which models it has: whoever knows one names it.
      if (error instanceof ApiError && error.code === "model_needed") setModels([]);
      else setFailure(error);
    }
    setAsked(undefined);
  };
  const first = useRef(ask);
  useEffect(() => {
    // What has all that it needs shows its models at once.
    if (!["key", "away"].includes(stateOf(one))) void first.current();
    return () => leave.current?.abort();
  }, [one]);
  useEffect(() => {
    // Whoever came here by the keyboard goes on with it.
    void models;
    form.current?.querySelector("input")?.focus();
  }, [models]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void ask();
  };
  const forget = (): void => {
    const path = { upstream: one.name };
    client.call("DELETE /v1/upstreams/{upstream}/key", { path }).then(forgotten, setFailure);
  };
  const takesKey = one.key !== "not_needed" && one.key_from !== "environment";
  return (
    <form ref={form} onSubmit={submit}>
      {models ? (
        <>
          <p>{words.choose}</p>
          <Rows
            hint={words.searchModels}
            isOpen
            items={models.map((model) => ({ id: model, label: model }))}
            choose={(model) => void ask(model)}
          />
        </>
      ) : (
        <>
          {one.answers != null && <p>{one.note}</p>}
          {takesKey && (
            <>
              <label htmlFor={id}>{words.key}</label>
              <input
                id={id}
                type="password"
                autoComplete="off"
                required={one.key_from !== "stored"}
                aria-invalid={failure !== undefined}
                aria-describedby={wrong}
                className="field"
                value={key}
                onChange={(event) => setKey(event.currentTarget.value)}
              />
              <p>{words.keyHint}</p>
            </>
          )}
          {one.key_url && (
            <a href={one.key_url} target="_blank" rel="noreferrer">
              {words.getKey(one.title)} ↗
            </a>
          )}
        </>
      )}
      <Problem id={wrong} error={failure} />
      <footer>
        {!models && (
          <button type="submit" className="button primary" disabled={asked !== undefined}>
            {words.test}
          </button>
        )}
        {one.key_from === "stored" && (
          <button type="button" className="button danger" onClick={forget}>
            {words.forget}
          </button>
        )}
        <p role="status">{asked && words.asking(asked)}</p>
      </footer>
    </form>
  );
}
