import type { AgentInfo, KnownUpstream } from "@throughline/client";
import { ArrowLeft, X } from "lucide-react";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { answering } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { IconButton } from "../ui/icon-button.tsx";
import { Connect } from "./connect.tsx";
import { Problem } from "./problem.tsx";
import { Rows } from "./rows.tsx";
import { byState, stateOf } from "./state.ts";
import { useConnectWords } from "./words.ts";

/** Who answers, and how another model comes to do so. R: O4 */
export default function ModelsDialog({ close }: { close(): void }) {
  const page = useWords();
  const words = useConnectWords();
  const client = useClient();
  const dialog = useRef<HTMLDialogElement>(null);
  const chosen = useSyncExternalStore(answering.subscribe, answering.get);
  const [known, setKnown] = useState<readonly KnownUpstream[]>();
  const [agents, setAgents] = useState<readonly AgentInfo[]>([]);
  const [failure, setFailure] = useState<unknown>();
  const [one, setOne] = useState<KnownUpstream>();
  useEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  }, []);
  useEffect(() => {
    if (one !== undefined) return undefined;
    const { signal, abort } = withAbort();
    const failed = (error: unknown): void => {
      if (!signal.aborted) setFailure(error);
    };
    client
      .call("GET /v1/agents", { signal })
      .then(({ items }) => setAgents(items.filter((agent) => agent.fault == null)), failed);
    client
      .call("GET /v1/upstreams/known", { signal })
      .then(({ items }) => setKnown(items.toSorted(byState)), failed);
    return abort;
  }, [client, one]);
  const end = (): void => dialog.current?.close();
  const use = (agent: string): void => {
    answering.set(agent);
    end();
    document.querySelector<HTMLElement>("form textarea")?.focus();
  };
  const isDefault = (name: string): boolean =>
    agents.some((agent) => agent.name === name && agent.is_default);
  return (
    <dialog
      ref={dialog}
      aria-label={page.connectHow}
      className="sheet models"
      onClose={close}
      onPointerDown={(event) => event.target === dialog.current && end()}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <header>
        {one && (
          <IconButton label={words.back} onClick={() => setOne(undefined)}>
            <ArrowLeft aria-hidden size={17} />
          </IconButton>
        )}
        <h2>{one?.title ?? page.connectHow}</h2>
        <IconButton label={page.close} onClick={end}>
          <X aria-hidden size={17} />
        </IconButton>
      </header>
      {one ? (
        <Connect one={one} agents={agents} use={use} forgotten={() => setOne(undefined)} />
      ) : (
        <>
          {agents.length > 1 && (
            <>
              <h3>{words.answering}</h3>
              <Rows
                items={agents.map(({ name, model, is_default }) => ({
                  id: name,
                  label: name,
                  note: model ?? "",
                  isCurrent: chosen ? chosen === name : is_default,
                }))}
                choose={(name) => use(isDefault(name) ? "" : name)}
              />
              <h3>{page.connectHow}</h3>
            </>
          )}
          <Problem error={failure} />
          {known ? (
            <Rows
              hint={words.search}
              items={known.map((row) => ({
                id: row.name,
                label: row.title,
                note: words.state[stateOf(row)],
              }))}
              choose={(name) => setOne(known.find((row) => row.name === name))}
            />
          ) : (
            failure === undefined && <p>{page.loading}</p>
          )}
        </>
      )}
    </dialog>
  );
}

function withAbort(): { signal: AbortSignal; abort(): void } {
  const leave = new AbortController();
  return { signal: leave.signal, abort: () => leave.abort() };
}
