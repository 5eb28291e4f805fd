import {
  type AgentDetail,
  type AgentField,
  type AgentSettings,
  ApiError,
  type Throughline,
} from "@throughline/client";
import { useCallback, useEffect, useState } from "react";
import { objectFrom } from "../shared/schema-form/draft.ts";
import { useRequest } from "../ui/use-request.ts";
import type { Example } from "./example.tsx";
import type { ExampleText } from "./example-text.tsx";
import { type Draft, draftOf, isChanged, settingsOf } from "./model/form.ts";
import { strayTests } from "./model/rules.ts";
import { unfinished } from "./model/text-rules.ts";

/** Pause after the last keystroke before a preview is requested. */
const WAIT_MS = 300;

/** One agent while it is edited: the saved version, the form, and the error of the last save. */
export function useEditing(
  client: Throughline,
  fields: readonly AgentField[],
  agent: AgentDetail,
  refresh: () => void,
) {
  const [saved, setSaved] = useState(agent);
  const [draft, setDraft] = useState(() => draftOf(fields, agent.settings));
  const [state, setState] = useState<"still" | "saving" | "saved">("still");
  const [refused, setRefused] = useState<unknown>();
  const isDirty = isChanged(fields, saved.settings, draft);

  const take = (next: AgentDetail): void => {
    setSaved(next);
    setRefused(undefined);
    refresh();
  };
  /** Saves the form; returns whether that succeeded. `version`: the version that is replaced. */
  const save = async (version = saved.version ?? undefined): Promise<boolean> => {
    const { name } = saved;
    const settings = settingsOf(fields, saved.settings, draft);
    setState("saving");
    try {
      const isDeleted = refused instanceof ApiError && refused.status === 404;
      const next = isDeleted
        ? await client.call("POST /v1/agents", { body: { name, settings } })
        : await client.call("PUT /v1/agents/{agent}", {
            path: { agent: name },
            body: { settings, ...(version === undefined ? {} : { version }) },
          });
      take(next);
      // Empty fields get their defaults; what was typed during the save stays, and so does the order of rules.
      setDraft((now) =>
        now === draft && isChanged(fields, next.settings, now)
          ? { ...draftOf(fields, next.settings), rules: now.rules, textRules: now.textRules }
          : now,
      );
      setState("saved");
      return true;
    } catch (error) {
      setRefused(error);
      setState("still");
      return false;
    }
  };
  return {
    saved,
    draft,
    /** The settings as they would be saved. */
    settings: settingsOf(fields, saved.settings, draft),
    state,
    refused,
    isDirty,
    isStray: draft.rules.some((rule) => strayTests(rule).size > 0),
    change: (more: Partial<Draft>) => {
      setDraft((draft) => ({ ...draft, ...more }));
      setState("still");
      // A conflict persists until the user resolves it, even if more is typed.
      if (!isConflict(refused)) setRefused(undefined);
    },
    save,
    discard: () => {
      setDraft(draftOf(fields, saved.settings));
      setRefused(undefined);
    },
    /** Discards the form in favor of the other user's version. */
    takeTheirs: async () => {
      try {
        const next = await client.call("GET /v1/agents/{agent}", { path: { agent: saved.name } });
        take(next);
        setDraft(draftOf(fields, next.settings));
      } catch (error) {
        setRefused(error);
      }
    },
  };
}

/** Another user has changed or deleted the agent. */
export function isConflict(error: unknown): error is ApiError {
  return error instanceof ApiError && (error.code === "changed_meanwhile" || error.status === 404);
}

/** The server's preview of the settings in the form. */
export function usePreview(
  client: Throughline,
  name: string,
  settings: AgentSettings,
  example: Example,
  exampleText: ExampleText,
) {
  const args = objectFrom(example.text);
  const call =
    example.tool !== "" && args !== undefined ? { tool: example.tool, arguments: args } : undefined;
  // Compared as text, so that a re-render of the form sends no request.
  const text = JSON.stringify({
    settings: unfinished(settings),
    call,
    text: exampleText.text === "" ? undefined : exampleText,
  });
  const ask = useCallback(
    (signal: AbortSignal) =>
      client.call("POST /v1/agents/{agent}/preview", {
        path: { agent: name },
        body: JSON.parse(text),
        signal,
      }),
    [client, name, text],
  );
  const [isFirst, setFirst] = useState(true);
  const answer = useRequest(ask, isFirst ? 0 : WAIT_MS);
  useEffect(() => setFirst(false), []);
  return { ...answer, isCurrent: answer.to === ask };
}
