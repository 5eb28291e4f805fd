import { type AgentInfo, ApiError } from "@throughline/client";
import { type FormEvent, Fragment, useEffect, useId, useRef, useState } from "react";
import { useClient } from "../session/context.tsx";
import { type ModelFacts, useFactsLine } from "../ui/model-facts.ts";
import { CustomFields } from "./custom-fields.tsx";
import {
  addressOf,
  withV1Fallback as askedAt,
  commandOf,
  listsNothing,
  NOTHING,
  nameOf,
  type UpstreamAddress,
} from "./custom-upstream.ts";
import { Problem } from "./problem.tsx";
import { Rows } from "./rows.tsx";
import { agentName, type Row, stateOf } from "./state.ts";
import { useConnectWords } from "./words.ts";

interface ConnectProps {
  /** The upstream; absent: a custom address. */
  one: Row | undefined;
  agents: readonly AgentInfo[];
  /** Switches to an agent with the connected model. */
  use(agent: string): void;
  forgotten(): void;
}

/** Form for address and key, then a list of models: each is tried before it is saved. */
export function Connect({ one, agents, use, forgotten }: ConnectProps) {
  const words = useConnectWords();
  const client = useClient();
  const [id, errorId] = [useId(), useId()];
  const [custom, setCustom] = useState(NOTHING);
  const [key, setKey] = useState("");
  const [models, setModels] = useState<readonly string[]>();
  const [known, setKnown] = useState<Readonly<Record<string, ModelFacts>>>({});
  const factsLine = useFactsLine();
  const [pending, setPending] = useState<string>();
  const [failure, setFailure] = useState<unknown>();
  const leave = useRef<AbortController>(undefined);
  const form = useRef<HTMLFormElement>(null);
  const name = one?.name ?? nameOf(custom);

  const ask = async (model?: string): Promise<void> => {
    leave.current?.abort();
    leave.current = new AbortController();
    const { signal } = leave.current;
    setFailure(undefined);
    setPending(model ?? one?.title ?? name);
    const chosen = model && { model, agent: agentName(name, model, agents) };
    const connect = (where?: UpstreamAddress) =>
      client.call("POST /v1/upstreams/{upstream}/connect", {
        path: { upstream: name },
        body: { ...where, ...(key && { key }), ...chosen },
        signal,
      });
    const connectOwn = async () => {
      if (model !== undefined) return await connect(addressOf(custom));
      const [there, answer] = await askedAt(custom, connect);
      setCustom(there);
      return answer;
    };
    try {
      const answer = await (one ? connect() : connectOwn());
      if (answer.agent != null) return use(answer.agent);
      setKey("");
      setModels(answer.models);
      setKnown(answer.model_facts);
    } catch (error) {
      if (signal.aborted) return;
      // The server does not list its models: the user names one.
      if (listsNothing(error)) setModels([]);
      else setFailure(error);
      // Some servers list their models without a key: the key field is shown again.
      if (error instanceof ApiError && error.code === "wrong_key") setModels(undefined);
    }
    setPending(undefined);
  };
  const first = useRef(ask);
  useEffect(() => {
    // An upstream that needs nothing more lists its models at once.
    if (one && !["key", "away"].includes(stateOf(one))) void first.current();
    return () => leave.current?.abort();
  }, [one]);
  useEffect(() => {
    // Keeps the focus for keyboard users.
    void models;
    form.current?.querySelector("input")?.focus();
  }, [models]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void ask();
  };
  const forget = (): void => {
    client
      .call("DELETE /v1/upstreams/{upstream}/key", { path: { upstream: name } })
      .then(forgotten, setFailure);
  };
  const lacksKey = key === "" && models === undefined && (one === undefined || one.key === "not_needed");
  const refused = failure instanceof ApiError ? failure : undefined;
  // An upstream without a key may require one by now.
  const takesKey =
    one === undefined ||
    (one.key_from !== "environment" && (one.key !== "not_needed" || refused?.code === "wrong_key"));
  return (
    <form ref={form} onSubmit={submit}>
      {models ? (
        <>
          <p>{models.length > 0 ? words.choose : words.nameModel}</p>
          <Rows
            hint={models.length > 0 ? words.searchModels : words.model}
            isOpen
            items={models.map((model) => ({ id: model, label: model, note: factsLine(known[model]) }))}
            choose={(model) => void ask(model)}
          />
        </>
      ) : (
        <>
          {one ? (
            (one.answers != null || one.isOwn) && <p>{one.note}</p>
          ) : (
            <CustomFields
              upstream={custom}
              change={setCustom}
              invalidField={fieldOf(refused)}
              errorId={errorId}
            />
          )}
          {takesKey && (
            <>
              <label htmlFor={id}>{one ? words.key : words.keyIfAny}</label>
              <input
                id={id}
                type="password"
                autoComplete="off"
                required={one !== undefined && one.key_from !== "stored"}
                aria-invalid={one ? failure !== undefined : fieldOf(refused) === "key"}
                aria-describedby={errorId}
                className="field"
                value={key}
                onChange={(event) => setKey(event.currentTarget.value)}
              />
              <p>{words.keyHint}</p>
            </>
          )}
          {one?.key_url && (
            <a href={one.key_url} target="_blank" rel="noreferrer">
              {words.getKey(one.title)} ↗
            </a>
          )}
        </>
      )}
      <Problem id={errorId} error={failure} lacksKey={lacksKey}>
        {refused?.code === "not_from_here" && <Command words={commandOf(custom)} />}
      </Problem>
      <footer>
        {!models && (
          <button type="submit" className="button primary" disabled={pending !== undefined}>
            {words.test}
          </button>
        )}
        {one && (one.key_from === "stored" || one.isStored) && (
          <button type="button" className="button danger" onClick={forget}>
            {one.isOwn ? words.forgetOwn : words.forget}
          </button>
        )}
        <p role="status">{pending && words.asking(pending)}</p>
      </footer>
    </form>
  );
}

/** A command to type elsewhere, wrapped between its words. */
function Command({ words }: { words: readonly string[] }) {
  return (
    <code>
      {words.map((word, at) => (
        <Fragment key={at}>
          {at > 0 && " "}
          <span>{word}</span>
        </Fragment>
      ))}
    </code>
  );
}

/** Field that a refusal is about, as the server calls it. */
function fieldOf(refused: ApiError | undefined): string | undefined {
  if (refused?.code === "name_taken") return "upstream";
  return refused?.code === "upstream_unreachable" ? "base_url" : refused?.param;
}
