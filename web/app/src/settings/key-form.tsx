import type { KeyInfo, ScopeName } from "@throughline/client";
import { type FormEvent, useId, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Failure } from "../ui/failure.tsx";
import { LimitFields } from "./limits.tsx";
import { limitsIn, NO_LIMITS, numberIn, typedLimits } from "./model/limits.ts";
import { usePeopleWords } from "./people-words.ts";
import { useSettingsWords } from "./words.ts";

const SCOPES: readonly ScopeName[] = ["chat", "tools", "agents", "admin"];
const DAY_MS = 86_400_000;

interface KeyFormProps {
  /** Owner of the key. */
  user: string;
  isAdmin: boolean;
  /** The key whose limits and models are edited; absent: a new one. */
  changed?: KeyInfo;
  saved(key: KeyInfo): void;
  close(): void;
}

/** Form that creates a key, which is shown once, or edits the limits of a key. */
export function KeyForm({ user, isAdmin, changed, saved, close }: KeyFormProps) {
  const words = usePeopleWords();
  const texts = useSettingsWords();
  const common = useWords();
  const client = useClient();
  const id = useId();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly ScopeName[]>(["chat"]);
  const [days, setDays] = useState("");
  const [models, setModels] = useState(changed?.models?.join("\n") ?? "");
  const [limits, setLimits] = useState(changed ? typedLimits(changed.limits) : NO_LIMITS);
  const [secret, setSecret] = useState<string>();
  const [failure, setFailure] = useState<unknown>();
  const lifetime = numberIn(days);
  const wanted = limitsIn(limits);
  const isReady = wanted !== undefined && (changed !== undefined || (lifetime !== undefined && name !== ""));

  const submit = async (): Promise<void> => {
    if (!isReady) return;
    const allowed = models.split("\n").flatMap((line) => line.trim() || []);
    const use = { limits: wanted, models: allowed.length > 0 ? allowed : null };
    try {
      if (changed) {
        saved(await client.call("PATCH /v1/keys/{key_id}", { path: { key_id: changed.id }, body: use }));
        return close();
      }
      const expires_at = lifetime == null ? null : Date.now() + lifetime * DAY_MS;
      const { key, ...made } = await client.call("POST /v1/keys", {
        body: { name, user, scopes: [...scopes], expires_at, ...use },
      });
      setFailure(undefined);
      saved(made);
      setSecret(key);
    } catch (error) {
      setFailure(error);
    }
  };
  if (secret !== undefined) {
    return (
      <div className="grid gap-2 rounded-control bg-sunken p-3">
        <p role="status" className="text-[13px] font-semibold">
          {words.shownOnce}
        </p>
        <p className="flex items-center gap-2">
          <code data-secret className="min-w-0 flex-1 text-[12.5px] [overflow-wrap:anywhere]">
            {secret}
          </code>
          <CopyButton label={words.copyKey} text={() => secret} />
          <button type="button" className="button" onClick={close}>
            {words.done}
          </button>
        </p>
      </div>
    );
  }
  return (
    <form
      aria-label={changed ? words.changeOf(changed.name) : words.newKey}
      className="grid gap-3 rounded-control bg-sunken p-3 text-[12.5px]"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        void submit();
      }}
    >
      {!changed && (
        <>
          <div className="grid gap-x-3 gap-y-2 min-[560px]:grid-cols-[1fr_11rem]">
            <label>
              {words.keyName}
              <input
                // biome-ignore lint/a11y/noAutofocus: whoever opens the form begins to type
                autoFocus
                className="field"
                autoComplete="off"
                placeholder={words.keyNameHint}
                value={name}
                onChange={(event) => setName(event.currentTarget.value)}
              />
            </label>
            <label>
              {words.days}
              <input
                className="field tabular-nums"
                inputMode="numeric"
                autoComplete="off"
                placeholder={words.daysHint}
                aria-invalid={lifetime === undefined}
                value={days}
                onChange={(event) => setDays(event.currentTarget.value)}
              />
            </label>
          </div>
          <fieldset className="flex flex-wrap items-center gap-x-4 gap-y-1">
            <legend>{words.may}</legend>
            {SCOPES.filter((scope) => scope !== "admin" || isAdmin).map((scope) => (
              <label key={scope} className="flex items-center gap-1.5">
                <input
                  type="checkbox"
                  checked={scopes.includes(scope)}
                  onChange={({ currentTarget: { checked } }) =>
                    setScopes(checked ? [...scopes, scope] : scopes.filter((one) => one !== scope))
                  }
                />
                {texts.scope[scope]}
              </label>
            ))}
          </fieldset>
        </>
      )}
      <LimitFields typed={limits} change={setLimits} />
      <div>
        <label htmlFor={id}>{words.models}</label>
        <textarea
          id={id}
          className="field resize-y font-mono"
          rows={2}
          spellCheck={false}
          aria-describedby={`${id}-hint`}
          value={models}
          onChange={(event) => setModels(event.currentTarget.value)}
        />
        <p id={`${id}-hint`} className="text-muted">
          {words.modelsHint}
        </p>
      </div>
      {failure !== undefined && <Failure error={failure} />}
      <div className="flex flex-wrap gap-2">
        <button type="submit" className="button primary" disabled={!isReady}>
          {changed ? words.save : words.createKey}
        </button>
        <button type="button" className="button" onClick={close}>
          {common.cancel}
        </button>
      </div>
    </form>
  );
}
