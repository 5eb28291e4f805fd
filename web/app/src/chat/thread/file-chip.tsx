import { FileText } from "lucide-react";
import { size } from "../../shared/format.ts";
import type { FileText as File } from "../model/file-text.ts";

/** A file of a message: its name, and the text that the model got. */
export function FileChip({ file }: { file: File }) {
  return (
    <details className="file-chip">
      <summary>
        <FileText aria-hidden size={16} />
        <bdi>{file.name}</bdi>
        <small>{size(new TextEncoder().encode(file.text).length)}</small>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it, too */}
      <pre dir="auto" tabIndex={0}>
        {file.text}
      </pre>
    </details>
  );
}
