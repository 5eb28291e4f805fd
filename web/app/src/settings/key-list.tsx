import type { KeyInfo } from "@throughline/client";
import { Plus } from "lucide-react";
import { useCallback, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { isOwnKey } from "../session/session.ts";
import { Confirmed, moment, Row, useRows } from "../shared/paged-rows.tsx";
import { Failure } from "../ui/failure.tsx";
import { KeyForm } from "./key-form.tsx";
import { limitsText } from "./limits.tsx";
import { usePeopleWords } from "./people-words.ts";
import { useSettingsWords } from "./words.ts";

/** The keys of a user, managed by an admin. `isAdmin`: keys may have the scope `admin`. */
export default function KeyList({ user, isAdmin }: { user: string; isAdmin: boolean }) {
  const words = useWords();
  const texts = useSettingsWords();
  const people = usePeopleWords();
  const client = useClient();
  const page = useCallback(
    async (cursor: string | undefined, signal: AbortSignal) => {
      const query = { user, ...(cursor === undefined ? {} : { cursor }) };
      const { data, next } = await client.call("GET /v1/keys", { query, signal });
      return { items: data.filter(({ revoked_at }) => revoked_at == null), ...(next ? { next } : {}) };
    },
    [client, user],
  );
  const { rows, error, again, without, put, more } = useRows<KeyInfo>(page);
  const [failure, setFailure] = useState<unknown>();
  /** Id of the edited key; empty: a new one. */
  const [edited, setEdited] = useState<string>();
  const revoke = async (id: string): Promise<void> => {
    try {
      await client.call("DELETE /v1/keys/{key_id}", { path: { key_id: id } });
      setFailure(undefined);
      without((key) => key.id === id);
    } catch (error) {
      setFailure(error);
    }
  };
  const form = (changed?: KeyInfo) => (
    <KeyForm
      user={user}
      isAdmin={isAdmin}
      {...(changed ? { changed } : {})}
      saved={(key) => put(key, (one) => one.id === key.id)}
      close={() => setEdited(undefined)}
    />
  );
  return (
    <>
      {error !== undefined && <Failure error={error} again={again} />}
      {failure !== undefined && <Failure error={failure} />}
      {rows === undefined && error === undefined && (
        <p role="status" className="p-3.5 text-[13px] text-muted">
          {words.loading}
        </p>
      )}
      {rows?.items.length === 0 && <p className="p-3.5 text-[13px] text-muted">{texts.noKeys}</p>}
      <ul className="py-1.5">
        {rows?.items.map((key) => (
          <Row
            key={key.id}
            side={
              <span className="flex flex-wrap gap-1.5">
                <button
                  type="button"
                  className="button"
                  aria-label={people.changeOf(key.name)}
                  aria-expanded={edited === key.id}
                  onClick={() => setEdited(edited === key.id ? undefined : key.id)}
                >
                  {people.change}
                </button>
                <Confirmed
                  label={texts.revoke}
                  name={texts.revokeKey(key.name)}
                  sure={texts.confirmRevoke}
                  act={() => void revoke(key.id)}
                />
              </span>
            }
            below={edited === key.id && form(key)}
          >
            <p className="flex flex-wrap items-center gap-2">
              <b className="text-[13.5px] font-semibold [overflow-wrap:anywhere]">{key.name}</b>
              {isOwnKey(key.id) && (
                <span className="pill" data-look="good">
                  {texts.thisBrowser}
                </span>
              )}
              <code className="text-muted">{key.id}</code>
            </p>
            <p className="text-[12.5px] text-muted">{factsOf(key, texts)}</p>
            <p className="text-[12.5px] text-muted [overflow-wrap:anywhere]">
              {[limitsText(key.limits, people), key.models && people.onlyModels(key.models.join(", "))]
                .filter(Boolean)
                .join(" · ")}
            </p>
          </Row>
        ))}
      </ul>
      {rows?.next !== undefined && (
        <button type="button" className="button quiet mx-3.5 mb-3 w-fit" onClick={more}>
          {words.more}
        </button>
      )}
      <div className="px-3.5 pb-3.5">
        {edited === "" ? (
          form()
        ) : (
          <button type="button" className="button" onClick={() => setEdited("")}>
            <Plus aria-hidden size={14} />
            {people.newKey}
          </button>
        )}
      </div>
    </>
  );
}

function factsOf(key: KeyInfo, texts: ReturnType<typeof useSettingsWords>): string {
  const isOver = key.expires_at != null && key.expires_at <= Date.now();
  return [
    key.scopes.map((scope) => texts.scope[scope] ?? scope).join(", "),
    key.last_used_at == null ? texts.neverUsed : texts.lastUsed(moment(key.last_used_at)),
    key.expires_at == null
      ? texts.created(moment(key.created_at))
      : isOver
        ? texts.expired
        : texts.expires(moment(key.expires_at)),
  ].join(" · ");
}
