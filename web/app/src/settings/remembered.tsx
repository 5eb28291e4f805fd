import type { RememberedApproval } from "@throughline/client";
import { useCallback, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Link } from "../shared/link.tsx";
import { moment, Row, useRows } from "../shared/paged-rows.tsx";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import { isMatch, rowOf } from "./model/remembered.ts";
import { useSettingsWords } from "./words.ts";

const PAGE_ROWS = 200;

/** Remembered decisions, each of which can be revoked. */
export function Remembered() {
  const words = useWords();
  const texts = useSettingsWords();
  const client = useClient();
  const page = useCallback(
    (cursor: string | undefined, signal: AbortSignal) =>
      client.call("GET /v1/remembered", {
        query: { everywhere: true, limit: PAGE_ROWS, ...(cursor === undefined ? {} : { cursor }) },
        signal,
      }),
    [client],
  );
  const { rows, error, again, without, more } = useRows<RememberedApproval>(page);
  const [search, setSearch] = useState("");
  const [failure, setFailure] = useState<unknown>();
  const forget = async (number: number): Promise<void> => {
    try {
      await client.call("DELETE /v1/remembered/{number}", { path: { number } });
      setFailure(undefined);
      without((row) => row.number === number);
    } catch (error) {
      setFailure(error);
    }
  };
  const shown = rows?.items.filter((row) => isMatch(rowOf(row), search)) ?? [];
  const none = rows?.items.length === 0 ? texts.noRemembered : texts.noMatch;
  return (
    <Panel title={texts.remembered}>
      <p className="px-3.5 pt-3 text-[13px] text-muted">{texts.rememberedHow}</p>
      {error !== undefined && <Failure error={error} again={again} />}
      {failure !== undefined && <Failure error={failure} />}
      {rows !== undefined && rows.items.length > 0 && (
        <div className="px-3.5 pt-3">
          <input
            type="search"
            className="field h-8"
            value={search}
            placeholder={texts.searchRemembered}
            aria-label={texts.searchRemembered}
            onChange={(event) => setSearch(event.currentTarget.value)}
          />
        </div>
      )}
      {shown.length === 0 && error === undefined && (
        <p role="status" className="p-3.5 text-[13px] text-muted">
          {rows === undefined ? words.loading : none}
        </p>
      )}
      <ul className="py-1.5" data-remembered>
        {shown.map((answer) => (
          <Answer key={answer.number} answer={answer} forget={() => void forget(answer.number)} />
        ))}
      </ul>
      {rows?.next !== undefined && (
        <button type="button" className="button quiet mx-3.5 mb-3" onClick={more}>
          {words.more}
        </button>
      )}
    </Panel>
  );
}

function Answer({ answer, forget }: { answer: RememberedApproval; forget(): void }) {
  const texts = useSettingsWords();
  const row = rowOf(answer);
  const which = { any: texts.anyArguments, these: texts.theseArguments, some: texts.someArguments }[
    row.arguments
  ];
  return (
    <Row
      side={
        <button type="button" className="button" aria-label={`${texts.forget}: ${row.tool}`} onClick={forget}>
          {texts.forget}
        </button>
      }
    >
      <p className="flex flex-wrap items-center gap-2">
        <span className="pill" data-look={row.isAllowed ? "good" : "bad"}>
          {row.isAllowed ? texts.allowed : texts.denied}
        </span>
        <code className="font-semibold [overflow-wrap:anywhere]">{row.tool}</code>
      </p>
      <p className="mt-0.5 text-[12.5px] text-muted">
        {[
          row.isAlways ? texts.scopeAlways : texts.scopeConversation,
          which,
          texts.given(moment(answer.at)),
        ].join(" · ")}
      </p>
      {row.question !== undefined && (
        <p className="mt-0.5 text-[12.5px] [overflow-wrap:anywhere]">{row.question}</p>
      )}
      {row.detail !== undefined && (
        <code className="mt-0.5 block text-[12px] [overflow-wrap:anywhere] text-muted">{row.detail}</code>
      )}
      {answer.conversation_id != null && (
        <Link href={`/c/${answer.conversation_id}`} className="text-[12.5px] text-accent underline">
          {texts.toConversation}
        </Link>
      )}
    </Row>
  );
}
