import type { Throughline } from "@throughline/client";
import { useCallback } from "react";
import { useClient } from "../session/context.tsx";
import { Section } from "../shared/call-card/section.tsx";
import { Waterfall } from "../shared/charts/waterfall.tsx";
import { Link } from "../shared/link.tsx";
import { useRequest } from "../ui/use-request.ts";
import { turnAddressOf } from "./model/turn-filter.ts";
import { useHistoryWords } from "./words.ts";

/** Page size of the calls of a turn. */
const NAMED_MAX = 200;

interface TurnTimeProps {
  turnId: string;
  toolId: string;
  status: string;
}

/** Time of the call's turn by kind. */
export function TurnTime({ turnId, toolId, status }: TurnTimeProps) {
  const texts = useHistoryWords();
  const client = useClient();
  // biome-ignore lint/correctness/useExhaustiveDependencies: with another status there is more to be known
  const ask = useCallback((signal: AbortSignal) => timesOf(client, turnId, signal), [client, turnId, status]);
  const { value } = useRequest(ask);
  if (value === undefined) return null;
  const { waterfall, names } = value;
  return (
    <Section title={texts.turnTime}>
      <Waterfall waterfall={waterfall} nameOf={(id) => names.get(id)} current={toolId} />
      {waterfall.saved_by_eager_ms > 0 && (
        <p className="mt-1 text-[12.5px] text-muted">{texts.saved(texts.ms(waterfall.saved_by_eager_ms))}</p>
      )}
      <Link href={turnAddressOf({ filter: {}, turn: turnId })} className="button mt-2">
        {texts.travel}
      </Link>
    </Section>
  );
}

async function timesOf(client: Throughline, turnId: string, signal: AbortSignal) {
  const [waterfall, { items }] = await Promise.all([
    client.call("GET /v1/turns/{turn_id}/waterfall", { path: { turn_id: turnId }, signal }),
    client.call("GET /v1/history/calls", { query: { turn_id: turnId, limit: NAMED_MAX }, signal }),
  ]);
  return { waterfall, names: new Map(items.map((call) => [call.tool_id, call.tool_name])) };
}
