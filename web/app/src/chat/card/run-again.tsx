import type { CallBlock, ToolCallResult } from "@throughline/client";
import { RotateCcw } from "lucide-react";
import { useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { Output } from "../../shared/call-card/output.tsx";
import { argumentsOf } from "../../shared/call-card/tone.ts";
import { duration } from "../../shared/format.ts";
import { Link } from "../../shared/link.tsx";
import { testerAddress } from "../../shared/tester-address.ts";
import { failed } from "../../ui/failed.ts";

/** Effects of tools that run again without confirmation. */
const HARMLESS: ReadonlySet<string | undefined> = new Set(["pure", "read", "cosmetic"]);

export function isHarmless(call: Readonly<CallBlock>): boolean {
  return HARMLESS.has(call.effect);
}

/** Runs an ended call again by hand: at once if it only reads, else after a confirmation. */
export function RunAgain({ call }: { call: Readonly<CallBlock> }) {
  const words = useWords();
  const again = useRunAgain(call);
  if (call.tool_name === undefined || call.error?.code === "unknown_tool" || argumentsOf(call) === undefined)
    return null;
  return (
    <>
      {again.result && <RanAgain result={again.result} />}
      {again.failure !== undefined && (
        <p role="alert" className="text-[12.5px] whitespace-pre-wrap text-error">
          {failed(again.failure, words)}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <button
          type="button"
          className={again.asks ? "button danger" : "button"}
          title={words.runAgainHint}
          disabled={again.isRunning}
          onClick={again.run}
        >
          <RotateCcw aria-hidden size={13} />
          {again.asks ? words.confirmRunAgain : words.runAgain}
        </button>
        <Link href={testerAddress(call.tool_name, objectOf(argumentsOf(call)))} className="button quiet">
          {words.tryOther}
        </Link>
      </div>
    </>
  );
}

function useRunAgain(call: Readonly<CallBlock>) {
  const client = useClient();
  const [asks, setAsks] = useState(false);
  const [isRunning, setRunning] = useState(false);
  const [result, setResult] = useState<ToolCallResult>();
  const [failure, setFailure] = useState<unknown>();
  const run = async (): Promise<void> => {
    const harmless = isHarmless(call);
    if (!harmless && !asks) return setAsks(true);
    setAsks(false);
    setRunning(true);
    setFailure(undefined);
    try {
      const args = objectOf(argumentsOf(call));
      setResult(
        await client.call("POST /v1/tools/{tool}/call", {
          path: { tool: call.tool_name ?? "" },
          body: { arguments: args, ...(harmless ? {} : { confirm: true }) },
        }),
      );
    } catch (error) {
      setFailure(error);
    } finally {
      setRunning(false);
    }
  };
  return { asks, isRunning, result, failure, run: () => void run() };
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function RanAgain({ result }: { result: ToolCallResult }) {
  const words = useWords();
  return (
    <Output
      title={`${words.rerunOutput} · ${duration(result.duration_ms)}`}
      text={result.output ?? ""}
      value={result.output_value}
      size={undefined}
      isLive={false}
      toolId={undefined}
    />
  );
}
