import type { AgentInfo } from "@throughline/client";
import { ArrowLeft, X } from "lucide-react";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { answering } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { IconButton } from "../ui/icon-button.tsx";
import { Connect } from "./connect.tsx";
import { Problem } from "./problem.tsx";
import { Rows } from "./rows.tsx";
import { type Row, rowsOf, stateOf } from "./state.ts";
import { useConnectWords } from "./words.ts";

/** Dialog for the choice and the connection of models. */
export default function ModelsDialog({ close }: { close(): void }) {
  const page = useWords();
  const words = useConnectWords();
  const client = useClient();
  const dialog = useRef<HTMLDialogElement>(null);
  const chosen = useSyncExternalStore(answering.subscribe, answering.get);
  const [rows, setRows] = useState<readonly Row[]>();
  const [agents, setAgents] = useState<readonly AgentInfo[]>([]);
  const [failure, setFailure] = useState<unknown>();
  const [one, setOne] = useState<Row | "custom">();
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
    Promise.all([
      client.call("GET /v1/upstreams/known", { signal }),
      client.call("GET /v1/upstreams", { signal }),
    ]).then(([known, used]) => setRows(rowsOf(known.items, used.items)), failed);
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
  const title = one === "custom" ? words.custom : (one?.title ?? page.connectHow);
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
        <h2>{title}</h2>
        <IconButton label={page.close} onClick={end}>
          <X aria-hidden size={17} />
        </IconButton>
      </header>
      {one ? (
        <Connect
          one={one === "custom" ? undefined : one}
          agents={agents}
          use={use}
          forgotten={() => setOne(undefined)}
        />
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
          {rows ? (
            <>
              <Rows
                hint={words.search}
                items={rows.map((row) => ({
                  id: row.name,
                  label: row.title,
                  note: words.state[stateOf(row)],
                }))}
                choose={(name) => setOne(rows.find((row) => row.name === name))}
              />
              <footer>
                <button type="button" onClick={() => setOne("custom")}>
                  <b>{words.custom}</b>
                  <small>{words.customNote}</small>
                </button>
              </footer>
            </>
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
