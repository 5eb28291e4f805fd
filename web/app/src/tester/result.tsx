import type { CallBlock, ToolCallResult } from "@throughline/client";
import { useWords } from "../i18n/use.ts";
import { Output } from "../shared/call-card/output.tsx";
import { Section } from "../shared/call-card/section.tsx";
import { toneOf } from "../shared/call-card/tone.ts";
import { duration } from "../shared/format.ts";
import { CopyButton } from "../ui/copy.tsx";
import { MediaView } from "../ui/media.tsx";
import { useTesterWords } from "./words.ts";

type Status = NonNullable<CallBlock["status"]>;
const ENDS: readonly Status[] = ["success", "error", "timed_out", "cancelled", "denied", "not_started"];

/** Result of a manual call. */
export function Result({ result }: { result: ToolCallResult }) {
  const words = useWords();
  const texts = useTesterWords();
  const status = ENDS.find((end) => end === result.status) ?? "unknown";
  const hasOutput = Boolean(result.output) || result.output_value !== undefined || status === "success";
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] gap-2.5">
      <p role="status" className="flex flex-wrap items-center gap-2 text-[12px] text-muted">
        <span className="pill" data-look={toneOf(status)}>
          {words.callStatus[status]} · {duration(result.duration_ms)}
        </span>
        {words.rule(result.rule)}
      </p>
      {hasOutput && (
        <Output
          text={result.output ?? ""}
          value={result.output_value}
          size={undefined}
          isLive={false}
          toolId={undefined}
        />
      )}
      {result.output_media?.map((media, at) => (
        <MediaView key={at} media={{ ...media, media_type: String(media.media_type) }} />
      ))}
      <Section title={texts.seenByModel} side={<CopyButton text={() => result.told_to_model} />}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
        <pre className="pre" tabIndex={0}>
          {result.told_to_model}
        </pre>
      </Section>
    </div>
  );
}
