import type { RemovedUser, UserInfo } from "@throughline/client";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Failure } from "../ui/failure.tsx";
import KeyList from "./key-list.tsx";
import { LimitFields } from "./limits.tsx";
import { limitsIn, typedLimits } from "./model/limits.ts";
import { usePeopleWords } from "./people-words.ts";

/** The user who set the server up: always an admin, and never removed. */
const FIRST = "local";

interface PersonProps {
  person: UserInfo;
  isSelf: boolean;
  changed(person: UserInfo): void;
  removed(removed: RemovedUser): void;
}

/** Rights, limits and keys of one user, with removal. */
export function Person({ person, isSelf, changed, removed }: PersonProps) {
  const words = usePeopleWords();
  const client = useClient();
  const [failure, setFailure] = useState<unknown>();
  const { name } = person;
  const isRemoved = person.removed_at != null;
  const attempt = async (act: () => Promise<void>): Promise<void> => {
    try {
      await act();
      setFailure(undefined);
    } catch (error) {
      setFailure(error);
    }
  };
  const change = (body: { is_admin: boolean } | { limits: UserInfo["limits"] }): Promise<void> =>
    attempt(async () => changed(await client.call("PATCH /v1/users/{user}", { path: { user: name }, body })));
  return (
    <div className="grid gap-4 rounded-control border border-line p-3">
      {failure !== undefined && <Failure error={failure} />}
      {isRemoved ? (
        <button
          type="button"
          className="button w-fit"
          onClick={() =>
            void attempt(async () => changed(await client.call("POST /v1/users", { body: { name } })))
          }
        >
          {words.bringBackOf(name)}
        </button>
      ) : (
        <>
          <Part title={words.rights}>
            <label className="flex items-center gap-2 text-[13px]">
              <input
                type="checkbox"
                className="switch"
                checked={person.is_admin}
                disabled={name === FIRST}
                onChange={({ currentTarget: { checked } }) => void change({ is_admin: checked })}
              />
              {words.mayAdminister}
            </label>
            {name === FIRST && <p className="text-[12.5px] text-muted">{words.firstStays}</p>}
          </Part>
          <Limits person={person} save={(limits) => change({ limits })} />
          <Part title={words.keysOf(name)}>
            <div className="-mx-3.5 -mb-3.5">
              <KeyList user={name} isAdmin={person.is_admin} />
            </div>
          </Part>
        </>
      )}
      {!isSelf && name !== FIRST && (
        <Removal
          name={name}
          isRemoved={isRemoved}
          act={(data) =>
            attempt(async () =>
              removed(
                await client.call("DELETE /v1/users/{user}", { path: { user: name }, query: { data } }),
              ),
            )
          }
        />
      )}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="grid gap-2">
      <h3 id={id} className="text-[13px] font-semibold">
        {title}
      </h3>
      {children}
    </section>
  );
}

function Limits({ person, save }: { person: UserInfo; save(limits: UserInfo["limits"]): Promise<void> }) {
  const words = usePeopleWords();
  const [typed, setTyped] = useState(() => typedLimits(person.limits));
  const limits = limitsIn(typed);
  const isSaved = JSON.stringify(limits) === JSON.stringify(limitsIn(typedLimits(person.limits)));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (limits !== undefined) void save(limits);
  };
  return (
    <Part title={words.limits}>
      <form aria-label={words.limitsOf(person.name)} onSubmit={submit} className="grid gap-2">
        <LimitFields typed={typed} change={setTyped} />
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <button type="submit" className="button" disabled={limits === undefined || isSaved}>
            {isSaved ? words.saved : words.saveLimits}
          </button>
          <p className="flex-1 basis-60 text-[12.5px] text-muted">{words.limitsHow}</p>
        </div>
      </form>
    </Part>
  );
}

/** Confirms the removal of a user, with the choice to delete the data. */
function Removal({
  name,
  isRemoved,
  act,
}: {
  name: string;
  isRemoved: boolean;
  act(data: "keep" | "delete"): Promise<void>;
}) {
  const words = usePeopleWords();
  const common = useWords();
  const [data, setData] = useState<"keep" | "delete">();
  if (data === undefined) {
    return (
      <button
        type="button"
        className="button danger w-fit"
        onClick={() => setData(isRemoved ? "delete" : "keep")}
      >
        {isRemoved ? words.deleteData : words.removeOf(name)}
      </button>
    );
  }
  const ways = isRemoved ? (["delete"] as const) : (["keep", "delete"] as const);
  return (
    <fieldset className="grid gap-2 rounded-control bg-error-soft p-3 text-[13px]">
      <legend className="float-left mb-1 w-full font-semibold">{words.removal(name)}</legend>
      {!isRemoved && <p className="clear-both">{words.removalAlways}</p>}
      {ways.map((way) => (
        <label key={way} className="flex items-start gap-2">
          <input
            type="radio"
            name={`removal-${name}`}
            className="mt-1"
            checked={data === way}
            onChange={() => setData(way)}
          />
          <span>
            <b className="block font-semibold">{way === "keep" ? words.keepData : words.deleteData}</b>
            {way === "keep" ? words.keepDataHow : words.deleteDataHow}
          </span>
        </label>
      ))}
      <div className="flex flex-wrap gap-2">
        <button type="button" className="button danger" onClick={() => void act(data)}>
          {data === "keep" ? words.confirmKeep(name) : words.confirmDelete(name)}
        </button>
        <button type="button" className="button" onClick={() => setData(undefined)}>
          {common.cancel}
        </button>
      </div>
    </fieldset>
  );
}
