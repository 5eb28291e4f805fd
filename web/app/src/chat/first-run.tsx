import type { ReactNode } from "react";
import { openModels } from "../connect/open.ts";
import { useWords } from "../i18n/use.ts";

interface FirstRunProps {
  model: string | undefined;
  ask(prompt: string): void;
  /** Who greets. */
  children: ReactNode;
}

/** What stands where nothing was said yet. R: O4 */
export function FirstRun({ model, ask, children }: FirstRunProps) {
  const words = useWords();
  return (
    <div className="mx-auto flex w-full max-w-190 flex-col items-start gap-4 min-[720px]:py-14">
      <header className="flex w-full items-center justify-between gap-4">
        <h2 className="text-2xl leading-tight font-semibold">{words.firstTitle}</h2>
        {children}
      </header>
      <p className="max-w-140 text-muted">{words.firstText}</p>
      <ul className="grid w-full gap-2.5 min-[560px]:grid-cols-2">
        {words.examples.map(({ title, prompt }) => (
          <li key={title}>
            <button
              type="button"
              onClick={() => ask(prompt)}
              className="flex h-full w-full flex-col rounded-card border border-line bg-surface px-4 py-3 text-left shadow-card hover:border-accent"
            >
              <span className="block text-[12px] font-semibold text-accent">{title}</span>
              <span className="block text-[14px]">{prompt}</span>
            </button>
          </li>
        ))}
      </ul>
      {model === "demo" && (
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
          <p className="text-[13px] text-muted">{words.demoModel}</p>
          <button type="button" className="button" onClick={openModels}>
            {words.connectHow}
          </button>
        </div>
      )}
    </div>
  );
}
