import type { CallDetail } from "@throughline/client";
import { ListFilter } from "lucide-react";
import { Section } from "../shared/call-card/section.tsx";
import { Link } from "../shared/link.tsx";
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
  const texts = useHistoryWords();
  const { tool_id, turn_id, conversation_id } = detail;
  return (
    <Section title={texts.ids}>
      <dl className="text-[12.5px]">
        <Id name={texts.idCall} id={tool_id} />
        <Id name={texts.idTurn} id={turn_id} only={() => filterBy(withPart(filter, "turn_id", turn_id))} />
        {conversation_id != null && (
          <Id
            name={texts.idConversation}
            id={conversation_id}
            only={() => filterBy(withPart(filter, "conversation_id", conversation_id))}
          />
        )}
      </dl>
      {conversation_id != null && (
        <Link href={`/c/${conversation_id}`} className="button mt-2">
          {texts.toConversation}
        </Link>
      )}
    </Section>
  );
}

function Id({ name, id, only }: { name: string; id: string; only?: () => void }) {
  const texts = useHistoryWords();
  return (
    <div className="flex items-center gap-2">
      <dt className="w-22 flex-none text-muted">{name}</dt>
      <dd className="min-w-0 flex-1 truncate font-mono text-[12px]" title={id}>
        {id}
      </dd>
      <dd className="flex">
        {only && (
          <IconButton label={texts.onlyThis(name)} onClick={only}>
            <ListFilter aria-hidden size={15} />
          </IconButton>
        )}
        <CopyButton text={() => id} label={texts.copyId(name)} />
      </dd>
    </div>
  );
}
