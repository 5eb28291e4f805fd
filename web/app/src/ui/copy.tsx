import { Check, Copy, type LucideIcon } from "lucide-react";
import { useEffect, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { IconButton } from "./icon-button.tsx";

const SHOWN_MS = 1_500;

/** Button that copies a text, and confirms it. */
export function CopyButton({
  text,
  label,
  icon: Icon = Copy,
}: {
  text: () => string;
  label?: string;
  icon?: LucideIcon;
}) {
  const words = useWords();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  // The clipboard needs HTTPS or localhost; elsewhere the text can be selected.
  if (!globalThis.navigator?.clipboard) return null;
  const copy = (): void => void navigator.clipboard.writeText(text()).then(() => setCopied(true));
  const shownLabel = isCopied ? words.copied : (label ?? words.copy);
  return (
    <IconButton label={shownLabel} onClick={copy}>
      {isCopied ? <Check aria-hidden size={15} /> : <Icon aria-hidden size={15} />}
    </IconButton>
  );
}
