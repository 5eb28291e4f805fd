import type { CallDetail } from "@throughline/client";
import { ListFilter } from "lucide-react";
import { Section } from "../chat/card/section.tsx";
import { Link } from "../shell/link.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { IconButton } from "../ui/icon-button.tsx";
import { type Filter, withPart } from "./model/filter.ts";
import { useHistoryWords } from "./words.ts";

interface IdsProps {
  detail: CallDetail;
  filter: Filter;
  filterBy(filter: Filter): void;
}

/** Ids of the call, its turn and its conversation, with links. */
export function Ids({ detail, filter, filterBy }: IdsProps) {
  const own = useHistoryWords();
  const { tool_id, turn_id, conversation_id } = detail;
  return (
    <Section title={own.ids}>
      <dl className="text-[12.5px]">
        <Id name={own.idCall} id={tool_id} />
        <Id name={own.idTurn} id={turn_id} only={() => filterBy(withPart(filter, "turn_id", turn_id))} />
        {conversation_id != null && (
          <Id
            name={own.idConversation}
            id={conversation_id}
            only={() => filterBy(withPart(filter, "conversation_id", conversation_id))}
          />
        )}
      </dl>
      {conversation_id != null && (
        <Link href={`/c/${conversation_id}`} className="button mt-2">
          {own.toConversation}
        </Link>
      )}
    </Section>
  );
}

function Id({ name, id, only }: { name: string; id: string; only?: () => void }) {
  const own = useHistoryWords();
  return (
    <div className="flex items-center gap-2">
      <dt className="w-22 flex-none text-muted">{name}</dt>
      <dd className="min-w-0 flex-1 truncate font-mono text-[12px]" title={id}>
        {id}
      </dd>
      <dd className="flex">
        {only && (
          <IconButton label={own.onlyThis(name)} onClick={only}>
            <ListFilter aria-hidden size={15} />
          </IconButton>
        )}
        <CopyButton text={() => id} label={own.copyId(name)} />
      </dd>
    </div>
  );
}
