import { sourcesOf } from "../model/citations.ts";
import { useCitationWords } from "./citation-words.ts";

/** Citations of a text, as the upstream names them. */
export default function Citations({ sources }: { sources: readonly unknown[] }) {
  const words = useCitationWords();
  const shown = sourcesOf(sources);
  if (shown.length === 0) return null;
  return (
    <ol aria-label={words.sources} className="citations">
      {shown.map(({ url, title, quote }, at) => (
        <li key={url ?? title} title={quote}>
          <span aria-hidden>{at + 1}</span>
          {url === undefined ? (
            <bdi>{title}</bdi>
          ) : (
            <a href={url} target="_blank" rel="noreferrer">
              <bdi>{title}</bdi>
            </a>
          )}
        </li>
      ))}
    </ol>
  );
}
