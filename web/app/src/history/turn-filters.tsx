import type { CountInfo } from "@throughline/client";
import { SPANS, statesIn } from "./model/filter.ts";
import { type TurnFilter, withTurnPart } from "./model/turn-filter.ts";
import { type TurnsState, turnTone } from "./model/turns.ts";
import { Only } from "./only.tsx";
import { Search } from "./search.tsx";
import { turnStatusWord, useHistoryWords } from "./words.ts";

interface TurnFiltersProps {
  state: TurnsState;
  filter: TurnFilter;
  filterBy(filter: TurnFilter, how?: "push" | "replace"): void;
}

/** Filters of the turns: existing values, each with the number of its turns. */
export function TurnFilters({ state, filter, filterBy }: TurnFiltersProps) {
  const texts = useHistoryWords();
  const choose = <N extends keyof TurnFilter>(name: N, value: TurnFilter[N]): void =>
    filterBy(withTurnPart(filter, name, value));
  // With a text search, the server knows which values exist, but not how many turns match the text.
  const isCounted = filter.q === undefined;
  return (
    <search className="flex flex-none flex-wrap items-center gap-2 px-4 py-3 min-[720px]:px-6">
      <Search
        wanted={filter.q ?? ""}
        label={texts.searchTurns}
        onSearch={(text) => filterBy(withTurnPart(filter, "q", text || undefined), "replace")}
      />
      <Choice
        label={texts.model}
        any={texts.anyModel}
        chosen={filter.model}
        counts={state.models}
        isCounted={isCounted}
        choose={(model) => choose("model", model)}
      />
      <Choice
        label={texts.agent}
        any={texts.anyAgent}
        chosen={filter.agent}
        counts={state.agents}
        isCounted={isCounted}
        choose={(agent) => choose("agent", agent)}
      />
      <select
        aria-label={texts.when}
        value={filter.since ?? ""}
        onChange={(event) =>
          choose(
            "since",
            SPANS.find((span) => span === event.currentTarget.value),
          )
        }
        className="field h-8 !w-auto max-[519px]:flex-1"
      >
        <option value="">{texts.since.ever}</option>
        {SPANS.map((span) => (
          <option key={span} value={span}>
            {texts.since[span]}
          </option>
        ))}
      </select>
      <fieldset className="flex flex-wrap gap-1.5">
        <legend className="sr-only">{texts.status}</legend>
        <Statuses
          state={state}
          filter={filter}
          isCounted={isCounted}
          choose={(status) => choose("status", status)}
        />
        {filter.conversation_id !== undefined && (
          <Only what={texts.ofConversation} leave={() => choose("conversation_id", undefined)} />
        )}
      </fieldset>
    </search>
  );
}

interface ChoiceProps {
  label: string;
  any: string;
  chosen: string | undefined;
  counts: readonly CountInfo[];
  isCounted: boolean;
  choose(name: string | undefined): void;
}

function Choice({ label, any, chosen, counts, isCounted, choose }: ChoiceProps) {
  const isThere = counts.some(({ name }) => name === chosen);
  return (
    <select
      aria-label={label}
      value={chosen ?? ""}
      onChange={(event) => choose(event.currentTarget.value || undefined)}
      className="field h-8 max-w-52 !w-auto max-[519px]:flex-1"
    >
      <option value="">{any}</option>
      {chosen !== undefined && !isThere && <option>{chosen}</option>}
      {counts.map(({ name, count }) => (
        <option key={name} value={name}>
          {isCounted ? `${name} (${count})` : name}
        </option>
      ))}
    </select>
  );
}

interface StatusesProps {
  state: TurnsState;
  filter: TurnFilter;
  isCounted: boolean;
  choose(status: string | undefined): void;
}

function Statuses({ state, filter, isCounted, choose }: StatusesProps) {
  const texts = useHistoryWords();
  const chosen = statesIn({ status: filter.status ?? "" });
  const missing = [...chosen].filter((one) => !state.statuses.some(({ name }) => name === one));
  const all = [...state.statuses, ...missing.map((name) => ({ name, count: 0 }))];
  return (
    <>
      <button
        type="button"
        className="chip"
        aria-pressed={chosen.size === 0}
        onClick={() => choose(undefined)}
      >
        {texts.all(isCounted ? (state.ofAnyStatus ?? 0) : undefined)}
      </button>
      {all.map(({ name, count }) => (
        <button
          key={name}
          type="button"
          className="chip"
          aria-pressed={chosen.has(name)}
          data-look={turnTone(name)}
          onClick={() => choose(chosen.has(name) && chosen.size === 1 ? undefined : name)}
        >
          {turnStatusWord(name, texts)} {isCounted && count}
        </button>
      ))}
    </>
  );
}
