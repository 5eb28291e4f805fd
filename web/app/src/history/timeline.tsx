import type { TimelineEntry } from "@throughline/client";
import { useWords } from "../i18n/use.ts";
import { Section } from "../shared/call-card/section.tsx";
import { statusWord } from "../shared/call-card/tone.ts";
import { stateOf } from "./model/row.ts";
import { type HistoryWords, useHistoryWords } from "./words.ts";

/** Events of a call with their times. */
export function Timeline({ moments }: { moments: readonly TimelineEntry[] }) {
  const texts = useHistoryWords();
  const begin = moments[0]?.at ?? 0;
  return (
    <Section title={texts.timeline}>
      <table className="facts">
        <tbody>
          {moments.map((moment) => (
            <tr key={moment.seq}>
              <th scope="row">
                {momentWord(moment.event, texts)}
                {moment.count > 1 && <span className="text-muted"> · {texts.times(moment.count)}</span>}
                <MomentDetail moment={moment} />
              </th>
              <td>+{texts.ms(moment.at - begin)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

/** Outcome, decision or error of an event. */
function MomentDetail({ moment: { event, detail } }: { moment: TimelineEntry }) {
  const words = useWords();
  const texts = useHistoryWords();
  const { status, error, decision, reason } = detail;
  const text =
    event === "tool_result" && typeof status === "string"
      ? statusWord(stateOf(status, words, codeOf(error)), words)
      : event === "approval_resolved"
        ? [
            decision === "deny" ? words.callStatus.denied : texts.approved,
            typeof reason === "string" && words.serverText(reason),
          ]
            .filter(Boolean)
            .join(": ")
        : "";
  return text === "" ? null : <span className="text-muted"> · {text}</span>;
}

/** Code of an error, as the event has it. */
function codeOf(error: unknown): string | undefined {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : undefined;
}

/** Events of later releases are shown by name. */
function momentWord(event: string, texts: HistoryWords): string {
  const names: Readonly<Record<string, string>> = texts.moment;
  return names[event] ?? event;
}
