import type { ShareInfo } from "@throughline/client";
import { useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { Link } from "../shared/link.tsx";
import { Confirmed, moment, Row, type useRows } from "../shared/paged-rows.tsx";
import { failed } from "../ui/failed.ts";
import { useSharedWords } from "./words.ts";

interface ShareLinksProps {
  links: ReturnType<typeof useRows<ShareInfo>>;
  /** Text of the empty list. */
  none: string;
  /** All links are to one conversation, which need not be named. */
  isOfOne?: boolean;
}

/** Shared links, each with a button to revoke it. */
export function ShareLinks({ links, none, isOfOne = false }: ShareLinksProps) {
  const words = useWords();
  const texts = useSharedWords();
  const client = useClient();
  const [failure, setFailure] = useState<unknown>();
  const { rows, error, without, more } = links;
  const revoke = async (id: string): Promise<void> => {
    setFailure(undefined);
    try {
      await client.call("DELETE /v1/shares/{share_id}", { path: { share_id: id } });
      without((share) => share.id === id);
    } catch (error) {
      setFailure(error);
    }
  };
  const problem = failure ?? error;
  return (
    <>
      {problem !== undefined && (
        <p role="alert" className="px-3.5 py-2 text-[13px] text-error">
          {failed(problem, words)}
        </p>
      )}
      {(rows === undefined || rows.items.length === 0) && problem === undefined && (
        <p role="status" className="px-3.5 py-2 text-[13px] text-muted">
          {rows === undefined ? words.loading : none}
        </p>
      )}
      <ul data-shares>
        {rows?.items.map((share) => {
          const [title, made] = [share.title || texts.untitled, moment(share.created_at)];
          const isExpired = share.expires_at != null && share.expires_at <= Date.now();
          const term =
            share.expires_at == null
              ? texts.unlimited
              : isExpired
                ? texts.expired
                : texts.expires(moment(share.expires_at));
          return (
            <Row
              key={share.id}
              side={
                <Confirmed
                  label={texts.revoke}
                  name={texts.revokeLink(title, made)}
                  sure={texts.confirmRevoke}
                  act={() => void revoke(share.id)}
                />
              }
            >
              {!isOfOne && (
                <Link
                  href={`/c/${share.conversation_id}`}
                  className="font-semibold hover:underline"
                  dir="auto"
                >
                  {title}
                </Link>
              )}
              <p className="text-[12.5px] text-muted">{`${texts.made(made)} · ${term}`}</p>
            </Row>
          );
        })}
      </ul>
      {rows?.next !== undefined && (
        <button type="button" className="button quiet mx-3.5 mb-3" onClick={more}>
          {words.more}
        </button>
      )}
    </>
  );
}
