import { useEffect, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";

/** What stands where nothing was said yet. R: O4 */
export function FirstRun({ ask }: { ask(prompt: string): void }) {
  const words = useWords();
  const model = useModel();
  const isDemo = model === "demo";
  return (
    <div className="mx-auto flex w-full max-w-190 flex-col items-start gap-4 py-8 min-[720px]:py-14">
      <h2 className="text-2xl leading-tight font-semibold">{words.firstTitle}</h2>
      <p className="max-w-140 text-muted">{words.firstText}</p>
      <ul className="grid w-full gap-2.5 min-[560px]:grid-cols-2">
        {words.examples.map(({ title, prompt }) => (
          <li key={title}>
            <button
              type="button"
              onClick={() => ask(prompt)}
              className="h-full w-full rounded-card border border-line bg-surface px-4 py-3 text-left shadow-card hover:border-accent"
            >
              <span className="block text-[12px] font-semibold text-accent">{title}</span>
              <span className="block text-[14px]">{prompt}</span>
            </button>
          </li>
        ))}
      </ul>
      {isDemo && (
        <>
          <p className="text-[13px] text-muted">{words.demoModel}</p>
          <details className="w-full rounded-card border border-line bg-sunken px-4 py-2.5 text-[13px]">
            <summary className="font-semibold">{words.connectHow}</summary>
            <p className="mt-2 text-muted">{words.connectText}</p>
            <pre className="pre mt-2">
              {"export DEEPSEEK_API_KEY=…\nthroughline serve --model deepseek/deepseek-chat"}
            </pre>
          </details>
        </>
      )}
    </div>
  );
}

/** The model that answers if nothing else is said. */
function useModel(): string | undefined {
  const client = useClient();
  const [model, setModel] = useState<string>();
  useEffect(() => {
    const leave = new AbortController();
    client
      .call("GET /v1/agents", { signal: leave.signal })
      .then(({ items }) => setModel(items.find((one) => one.is_default)?.model?.split("/")[0]))
      .catch(() => undefined);
    return () => leave.abort();
  }, [client]);
  return model;
}
