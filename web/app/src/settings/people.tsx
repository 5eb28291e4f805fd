import type { MeInfo, UserInfo } from "@throughline/client";
import { Plus } from "lucide-react";
import { type FormEvent, useCallback, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Row, useRows } from "../shared/paged-rows.tsx";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import { limitsText } from "./limits.tsx";
import { usePeopleWords } from "./people-words.ts";
import { Person } from "./person.tsx";

/** All users of the server, for admins. */
export default function People({ me }: { me: MeInfo }) {
  const words = usePeopleWords();
  const common = useWords();
  const client = useClient();
  const page = useCallback(
    (cursor: string | undefined, signal: AbortSignal) =>
      client.call("GET /v1/users", { query: cursor === undefined ? {} : { cursor }, signal }),
    [client],
  );
  const { rows, error, again, without, put, more } = useRows<UserInfo>(page);
  const [open, setOpen] = useState<string>();
  const [isAdding, setAdding] = useState(false);
  const [done, setDone] = useState("");
  const changed = (person: UserInfo): void => put(person, ({ name }) => name === person.name);
  return (
    <Panel
      title={words.people}
      side={
        !isAdding && (
          <button type="button" className="button" onClick={() => setAdding(true)}>
            <Plus aria-hidden size={14} />
            {words.add}
          </button>
        )
      }
    >
      <p className="px-3.5 pt-3 text-[13px] text-muted">{words.peopleHow}</p>
      {isAdding && (
        <AddPerson
          close={() => setAdding(false)}
          added={(person) => {
            changed(person);
            setOpen(person.name);
            setDone("");
          }}
        />
      )}
      {error !== undefined && <Failure error={error} again={again} />}
      <p role="status" className="px-3.5 pt-2 text-[13px] text-muted empty:hidden">
        {rows === undefined && error === undefined ? common.loading : done}
      </p>
      <ul className="py-1.5" data-people>
        {rows?.items.map((person) => (
          <Row
            key={person.name}
            side={
              <button
                type="button"
                className="button"
                aria-label={words.manageOf(person.name)}
                aria-expanded={open === person.name}
                onClick={() => setOpen(open === person.name ? undefined : person.name)}
              >
                {words.manage}
              </button>
            }
            below={
              open === person.name && (
                <Person
                  person={person}
                  isSelf={person.name === me.user}
                  changed={changed}
                  removed={({ name, keys_revoked, deleted }) => {
                    if (deleted == null) again();
                    else without((one) => one.name === name);
                    setOpen(undefined);
                    setDone(
                      deleted == null
                        ? words.wasRemoved(name, keys_revoked)
                        : words.wasDeleted(name, deleted.conversations, deleted.files),
                    );
                  }}
                />
              )
            }
          >
            <Summary person={person} isSelf={person.name === me.user} />
          </Row>
        ))}
      </ul>
      {rows?.next !== undefined && (
        <button type="button" className="button quiet mx-3.5 mb-3 w-fit" onClick={more}>
          {common.more}
        </button>
      )}
    </Panel>
  );
}

function Summary({ person, isSelf }: { person: UserInfo; isSelf: boolean }) {
  const words = usePeopleWords();
  const { usage } = person;
  return (
    <>
      <p className="flex flex-wrap items-center gap-2">
        <b className="text-[13.5px] font-semibold [overflow-wrap:anywhere]">{person.name}</b>
        {isSelf && (
          <span className="pill" data-look="good">
            {words.isYou}
          </span>
        )}
        {person.is_admin && <span className="pill">{words.isAdmin}</span>}
        {person.removed_at != null && (
          <span className="pill" data-look="bad">
            {words.isRemoved}
          </span>
        )}
      </p>
      <p className="text-[12.5px] text-muted tabular-nums">
        {[
          words.today(words.use(usage.turns_today, usage.tokens_today)),
          words.month(words.use(usage.turns_this_month, usage.tokens_this_month)),
        ].join(" · ")}
      </p>
      <p className="text-[12.5px] text-muted tabular-nums">{limitsText(person.limits, words)}</p>
    </>
  );
}

function AddPerson({ added, close }: { added(person: UserInfo): void; close(): void }) {
  const words = usePeopleWords();
  const common = useWords();
  const client = useClient();
  const [name, setName] = useState("");
  const [failure, setFailure] = useState<unknown>();
  const add = async (): Promise<void> => {
    try {
      added(await client.call("POST /v1/users", { body: { name: name.trim() } }));
      close();
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <form
      aria-label={words.add}
      className="grid gap-2 px-3.5 pt-3"
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        void add();
      }}
    >
      <div className="flex flex-wrap items-end gap-2">
        <label className="min-w-0 flex-1 basis-48 text-[12.5px]">
          {words.name}
          <input
            // biome-ignore lint/a11y/noAutofocus: whoever opens the form begins to type
            autoFocus
            className="field"
            autoComplete="off"
            spellCheck={false}
            autoCapitalize="none"
            placeholder={words.nameHint}
            aria-invalid={failure !== undefined}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <button type="submit" className="button primary" disabled={name.trim() === ""}>
          {words.addNow}
        </button>
        <button type="button" className="button" onClick={close}>
          {common.cancel}
        </button>
      </div>
      {failure !== undefined && <Failure error={failure} />}
    </form>
  );
}
