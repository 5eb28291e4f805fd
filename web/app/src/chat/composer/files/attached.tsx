import { FileText, X } from "lucide-react";
import { useSyncExternalStore } from "react";
import { useWords } from "../../../i18n/use.ts";
import type { Words } from "../../../i18n/words.ts";
import { size } from "../../../shared/format.ts";
import { failed } from "../../../ui/failed.ts";
import { fileIn } from "../../model/file-text.ts";
import {
  type Attachment,
  type Attachments,
  FILES_MAX,
  FILES_TEXT_BYTES_MAX,
  type Refused,
} from "../attachments.ts";
import { FILE_TEXT_BYTES_MAX } from "./read.ts";
import { type FileWords, useFileWords } from "./words.ts";

/** Attached and refused files. */
export default function Attached({ attachments }: { attachments: Attachments }) {
  const page = useWords();
  const words = useFileWords();
  const { list, refused } = useSyncExternalStore(attachments.subscribe, attachments.get);
  return (
    <>
      {list.length > 0 && (
        <ul aria-label={words.files} className="attached">
          {list.map((one) => (
            <li key={one.key} aria-busy={one.part === undefined}>
              {one.url === undefined ? <FileText aria-hidden size={20} /> : <img src={one.url} alt="" />}
              <span>
                <bdi title={one.name}>{one.name}</bdi>
                <small>{noteOf(one, words)}</small>
              </span>
              <button
                type="button"
                aria-label={words.remove(one.name)}
                title={words.remove(one.name)}
                onClick={(event) => {
                  // The focused button disappears, so the focus moves on.
                  event.currentTarget.form?.querySelector("textarea")?.focus();
                  attachments.remove(one.key);
                }}
              >
                <X aria-hidden size={14} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {/* Rendered even when empty: screen readers only announce changes of an existing region. */}
      <div role="alert">
        {refused.length > 0 && (
          <div className="refused">
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: many of them scroll, without a mouse, too */}
            <ul tabIndex={0} aria-label={words.refused}>
              {refused.map((one) => (
                <li key={one.key}>{refusalText(one, words, page)}</li>
              ))}
            </ul>
            <button
              type="button"
              aria-label={words.dismiss}
              title={words.dismiss}
              onClick={attachments.dismiss}
            >
              <X aria-hidden size={14} />
            </button>
          </div>
        )}
      </div>
    </>
  );
}

function noteOf({ part, bytes }: Attachment, words: FileWords): string {
  if (part === undefined) return words.reading;
  const pages = part.type === "text" ? fileIn(part.text)?.pages : undefined;
  if (pages === undefined) return bytes === 0 ? "" : size(bytes);
  return pages.includes(" of ") ? words.partly(pages) : words.pages(pages);
}

function refusalText({ name, why }: Refused, words: FileWords, page: Words): string {
  switch (why) {
    case "binary":
      return words.binary(name);
    case "empty":
      return words.empty(name);
    case "no_text":
      return words.noText(name);
    case "too_long":
      return words.tooLong(name, size(FILE_TEXT_BYTES_MAX));
    case "together":
      return words.together(name, size(FILES_TEXT_BYTES_MAX));
    case "too_many":
      return words.tooMany(name, FILES_MAX);
    default:
      return words.failed(name, failed(why.error, page));
  }
}
