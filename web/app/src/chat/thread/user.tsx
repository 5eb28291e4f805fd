import type { UserPart } from "@throughline/client";
import { useWords } from "../../i18n/use.ts";
import { MediaView } from "../../ui/media.tsx";
import type { Said } from "../model/entry.ts";

/** What the user said, with its pictures. */
export function UserParts({ parts }: { parts: readonly UserPart[] }) {
  const texts = parts.flatMap((part) => (part.type === "text" ? part.text : []));
  return (
    <>
      {parts.map((part, at) =>
        part.type === "text" ? null : (
          <div key={at} className="mb-1.5 ml-auto w-fit">
            <MediaView media={part} />
          </div>
        ),
      )}
      {texts.length > 0 && <p className="user-bubble">{texts.join("\n\n")}</p>}
    </>
  );
}

/** The same, before the server has it. */
export function SaidParts({ said }: { said: readonly Said[] }) {
  const words = useWords();
  return (
    <>
      {said.map((part) =>
        part.type === "image" ? (
          <img
            key={part.file_id}
            src={part.url}
            alt={words.picture}
            className="mb-1.5 ml-auto max-h-80 rounded-card"
          />
        ) : (
          <p key="text" className="user-bubble">
            {part.text}
          </p>
        ),
      )}
    </>
  );
}
