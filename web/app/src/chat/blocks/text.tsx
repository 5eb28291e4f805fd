import { useWords } from "../../i18n/use.ts";
import type { Growth } from "./markdown/growth.ts";
import { Markdown } from "./markdown/markdown.tsx";

export function TextBlock({
  text,
  isOpen,
  code,
  growth,
}: {
  text: string;
  isOpen: boolean;
  code: string | undefined;
  growth?: Growth;
}) {
  const words = useWords();
  return (
    <>
      {code === "refusal" && <p className="text-[12px] font-semibold text-muted">{words.refusal}</p>}
      <Markdown text={text} isOpen={isOpen} {...(growth && { growth })} />
    </>
  );
}
