import type { UserPart } from "@throughline/client";
import { useWords } from "../../i18n/use.ts";
import { MediaView } from "../../ui/media.tsx";
import { type DraftPart, wordsIn } from "../model/entry.ts";
import { fileIn } from "../model/file-text.ts";
import { FileChip } from "./file-chip.tsx";

/** The user's message with its pictures and files. */
export function UserParts({ parts }: { parts: readonly UserPart[] }) {
  return (
    <>
      {parts.map((part, at) =>
        part.type === "text" ? null : (
          <div key={at} className="mb-1.5 ms-auto w-fit">
            <MediaView media={part} />
          </div>
        ),
      )}
      <TextParts parts={parts} />
    </>
  );
}

/** The user's message before the server has it. */
export function DraftParts({ parts }: { parts: readonly DraftPart[] }) {
  const words = useWords();
  return (
    <>
      {parts.map((part) =>
        part.type === "image" ? (
          <img
            key={part.file_id}
            src={part.url}
            alt={words.picture}
            className="mb-1.5 ms-auto max-h-80 rounded-card"
          />
        ) : null,
      )}
      <TextParts parts={parts} />
    </>
  );
}

/** Text and text files of a message. */
function TextParts({ parts }: { parts: readonly (UserPart | DraftPart)[] }) {
  const words = wordsIn(parts);
  return (
    <>
      {parts.map((part, at) => {
        const file = part.type === "text" ? fileIn(part.text) : undefined;
        return file && <FileChip key={at} file={file} />;
      })}
      {words !== "" && (
        <p dir="auto" className="user-bubble">
          {words}
        </p>
      )}
    </>
  );
}
