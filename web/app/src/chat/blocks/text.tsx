import { useWords } from "../../i18n/use.ts";
import { Markdown } from "./markdown.tsx";

/** Visible text. */
export function TextBlock({
  text,
  isOpen,
  code,
}: {
  text: string;
  isOpen: boolean;
  code: string | undefined;
}) {
  const words = useWords();
  return (
    <>
      {code === "refusal" && <p className="text-[12px] font-semibold text-muted">{words.refusal}</p>}
      <Markdown text={text} isOpen={isOpen} />
    </>
  );
}
