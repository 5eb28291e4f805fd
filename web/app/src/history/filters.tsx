import { useWords } from "../i18n/use.ts";
import { callTone } from "../shared/call-card/tone.ts";
import { type CallsState, countOf } from "./model/calls.ts";
import { FAILED, type Filter, isOfFailed, SPANS, statesIn, withPart } from "./model/filter.ts";
import { stateOf, stateWord } from "./model/row.ts";
import { Only } from "./only.tsx";
import { Search } from "./search.tsx";
import { useHistoryWords } from "./words.ts";

interface FiltersProps {
  state: CallsState;
  filter: Filter;
  filterBy(filter: Filter, how?: "push" | "replace"): void;
}

/** Filters of the calls: existing states and tools, each with the number of its calls. */
export function Filters({ state, filter, filterBy }: FiltersProps) {
  const texts = useHistoryWords();
  const tools = new Set(state.tools.map(({ name }) => name));
  const choose = <N extends keyof Filter>(name: N, value: Filter[N]): void =>
    filterBy(withPart(filter, name, value));
  return (
    <search className="flex flex-none flex-wrap items-center gap-2 px-4 py-3 min-[720px]:px-6">
      <Search
        wanted={filter.q ?? ""}
        label={texts.search}
        onSearch={(text) => filterBy(withPart(filter, "q", text || undefined), "replace")}
      />
      <select
        aria-label={texts.tool}
        value={filter.tool ?? ""}
        onChange={(event) => choose("tool", event.currentTarget.value || undefined)}
        className="field h-8 max-w-52 !w-auto max-[519px]:flex-1"
      >
        <option value="">{texts.anyTool}</option>
        {filter.tool !== undefined && !tools.has(filter.tool) && <option>{filter.tool}</option>}
        {state.tools.map(({ name, count }) => (
          <option key={name} value={name}>{`${name} (${count})`}</option>
        ))}
      </select>
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
        <States state={state} filter={filter} choose={(status) => choose("status", status)} />
        <button
          type="button"
          className="chip"
          aria-pressed={filter.slow !== undefined}
          onClick={() => choose("slow", filter.slow === undefined ? "1" : undefined)}
        >
          {texts.slow}
        </button>
        {filter.conversation_id !== undefined && (
          <Only what={texts.ofConversation} leave={() => choose("conversation_id", undefined)} />
        )}
        {filter.turn_id !== undefined && (
          <Only what={texts.ofTurn} leave={() => choose("turn_id", undefined)} />
        )}
      </fieldset>
    </search>
  );
}

interface StatesProps {
  state: CallsState;
  filter: Filter;
  choose(status: string | undefined): void;
}

/** Filter by state. A click selects one state, or all failures; an address may combine any of them. */
function States({ state, filter, choose }: StatesProps) {
  const words = useWords();
  const texts = useHistoryWords();
  const chosen = statesIn(filter);
  const isFailed = isOfFailed(filter);
  const failed = FAILED.filter((one) => state.statuses.some(({ name }) => name === one));
  return (
    <>
      <button
        type="button"
        className="chip"
        aria-pressed={chosen.size === 0}
        onClick={() => choose(undefined)}
      >
        {texts.all(state.ofAnyStatus ?? 0)}
      </button>
      {(isFailed || failed.length > 1) && (
        <button
          type="button"
          className="chip"
          aria-pressed={isFailed}
          data-look="bad"
          onClick={() => choose(isFailed ? undefined : FAILED.join(","))}
        >
          {texts.failures} {countOf(state.statuses, new Set(FAILED))}
        </button>
      )}
      {statesThere(state, isFailed ? [] : chosen).map(({ name, count }) => (
        <button
          key={name}
          type="button"
          className="chip"
          aria-pressed={chosen.has(name)}
          data-look={callTone(stateOf(name, words))}
          onClick={() => choose(chosen.has(name) && chosen.size === 1 ? undefined : name)}
        >
          {stateWord(stateOf(name, words), words, texts)} {count}
        </button>
      ))}
    </>
  );
}

/** Existing states, and the selected ones even if no call matches them. */
function statesThere({ statuses }: CallsState, chosen: Iterable<string>) {
  const missing = [...chosen].filter((one) => !statuses.some(({ name }) => name === one));
  return [...statuses, ...missing.map((name) => ({ name, count: 0 }))];
}
