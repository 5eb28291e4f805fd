import type { SearchResult } from "@throughline/client";
import { folded } from "@throughline/json";
import { useWords } from "../../i18n/use.ts";
import { Link } from "../../shared/link.tsx";
import type { ConversationList, ListState } from "./model/list.ts";
import { useListWords } from "./words.ts";

/** Search hits with their context, each a link to its turn. */
export function Hits({ list, state, done }: { list: ConversationList; state: ListState; done(): void }) {
  const words = useWords();
  const texts = useListWords();
  const { hits, hitsNext, isLoading, query } = state;
  return (
    <nav aria-label={texts.search} className="min-h-0 flex-1 overflow-auto px-2 pb-2">
      <p role="status" className={hits.length === 0 ? "p-2 text-[13px] text-muted" : "sr-only"}>
        {hits.length > 0 ? undefined : isLoading ? words.loading : words.noResults}
      </p>
      <ul>
        {hits.map((hit, at) => (
          <li key={`${hit.conversation_id} ${hit.turn_id} ${hit.part}`}>
            <Link href={addressOf(hit)} onClick={done} className="search-hit">
              {/* One title above consecutive hits of a conversation. */}
              {hits[at - 1]?.conversation_id !== hit.conversation_id && (
                <b dir="auto">{hit.title || texts.untitled}</b>
              )}
              <span dir="auto">
                {hit.part === "title" ? texts.inTitle : <Marked text={hit.snippet} query={query.trim()} />}
              </span>
            </Link>
          </li>
        ))}
      </ul>
      {hitsNext !== undefined && !isLoading && (
        <button type="button" className="button quiet w-full" onClick={() => void list.more()}>
          {words.more}
        </button>
      )}
    </nav>
  );
}

function addressOf({ conversation_id, turn_id }: SearchResult): string {
  return turn_id == null ? `/c/${conversation_id}` : `/c/${conversation_id}#turn=${turn_id}`;
}

/** A text with the matches highlighted. */
function Marked({ text, query }: { text: string; query: string }) {
  const parts: string[] = [];
  const [all, wanted] = [folded(text), folded(query)];
  if (wanted !== "") {
    let from = 0;
    for (let at = all.indexOf(wanted); at >= 0; at = all.indexOf(wanted, from)) {
      parts.push(text.slice(from, at), text.slice(at, at + wanted.length));
      from = at + wanted.length;
    }
    parts.push(text.slice(from));
  } else parts.push(text);
  return parts.map((part, at) => (at % 2 === 1 ? <mark key={at}>{part}</mark> : part));
}
