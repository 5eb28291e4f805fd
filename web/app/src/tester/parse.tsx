import type { ParsedReply, ParsedRequest, ToolInfo } from "@throughline/client";
import { Play } from "lucide-react";
import { useCallback, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { useClient } from "../session/context.tsx";
import { ToolIcon } from "../shared/call-card/icon.tsx";
import { Section } from "../shared/call-card/section.tsx";
import type { Outlook } from "../shared/outlook.ts";
import { OUTLOOK_TONES } from "../shared/outlook.ts";
import { go } from "../shared/router.ts";
import { exampleReply } from "../shared/schema-form/example.ts";
import { testerAddress } from "../shared/tester-address.ts";
import { Failure } from "../ui/failure.tsx";
import { Panel } from "../ui/panel.tsx";
import { useRequest } from "../ui/use-request.ts";
import { Controls, Slider } from "./controls.tsx";
import { afterPiece, outlookOf, warningsOf } from "./model/passages.ts";
import { Passages } from "./passages.tsx";
import { usePlaying } from "./play.ts";
import { useTesterWords } from "./words.ts";

type Protocol = "any" | "vcp" | "xml";
const PROTOCOLS: readonly Protocol[] = ["any", "vcp", "xml"];
/** Pause after the last keystroke; playback is not delayed. */
const WAIT_MS = 150;

/** Parses a pasted reply at once or piece by piece, without running its calls. */
export function ParsePanel({ agent, example }: { agent: string | undefined; example: ToolInfo | undefined }) {
  const words = useTesterWords();
  const [text, setText] = useState("");
  const [protocol, setProtocol] = useState<Protocol>("any");
  const [piece, setPiece] = useState(4);
  const [perSecond, setPerSecond] = useState(20);
  const [read, setRead] = useState<{ text: string; parsed: ParsedReply }>();
  const after = useCallback((at: number) => afterPiece(text, at, piece), [text, piece]);
  const playing = usePlaying(
    { length: text.length, after, perSecond },
    (at) => at === 0 || read?.text.length === at,
  );
  const arrived = playing.at === undefined ? text : text.slice(0, playing.at);
  const isWhole = arrived.length === text.length;
  const failure = useParsed(arrived, protocol, agent, playing.at === undefined ? WAIT_MS : 0, setRead);
  const isRead = arrived !== "" && read?.text === arrived;
  return (
    <Panel
      title={words.parse}
      side={
        <>
          <label className="flex items-center gap-1.5 text-[12.5px] text-muted">
            {words.protocol}
            <select
              value={protocol}
              onChange={(event) =>
                setProtocol(PROTOCOLS.find((one) => one === event.currentTarget.value) ?? "any")
              }
              className="field w-auto py-1"
            >
              {PROTOCOLS.map((one) => (
                <option key={one} value={one}>
                  {one === "any" ? words.anyProtocol : one.toUpperCase()}
                </option>
              ))}
            </select>
          </label>
          {playing.at === undefined ? (
            <button type="button" className="button" disabled={text === ""} onClick={playing.start}>
              <Play aria-hidden size={13} />
              {words.play}
            </button>
          ) : (
            <button type="button" className="button" onClick={playing.end}>
              {words.endPlay}
            </button>
          )}
        </>
      }
    >
      <div className="panel-body">
        {playing.at !== undefined && (
          <Controls
            playing={playing}
            perSecond={perSecond}
            setPerSecond={setPerSecond}
            isOver={playing.at >= text.length}
            text={words.arrived(playing.at, text.length)}
          >
            <Slider
              label={words.piece}
              text={words.characters(piece)}
              value={piece}
              max={64}
              change={setPiece}
            />
          </Controls>
        )}
        <Passages
          text={text}
          arrived={arrived}
          parsed={isRead ? read.parsed : undefined}
          isPlayed={playing.at !== undefined}
          change={setText}
        />
        {text === "" && example && (
          <div>
            <button
              type="button"
              className="button"
              onClick={() => setText(exampleReply(example, words.exampleBefore, words.exampleAfter))}
            >
              {words.example}
            </button>
          </div>
        )}
        {failure !== undefined && <Failure error={failure} />}
        {read && arrived !== "" && <Findings parsed={read.parsed} text={read.text} isWhole={isWhole} />}
      </div>
    </Panel>
  );
}

/** Sends the text to the server's parser; returns its error. */
function useParsed(
  text: string,
  protocol: Protocol,
  agent: string | undefined,
  waitMs: number,
  take: (read: { text: string; parsed: ParsedReply }) => void,
): unknown {
  const client = useClient();
  const ask = useCallback(
    async (signal: AbortSignal) => {
      const body = {
        text,
        ...(protocol === "any" ? {} : { protocol }),
        ...(agent === undefined ? {} : { agent }),
      };
      const parsed = await client.call("POST /v1/parse", { body, signal });
      if (!signal.aborted) take({ text, parsed });
    },
    [client, text, protocol, agent, take],
  );
  return useRequest(text === "" ? undefined : ask, waitMs).error;
}

function Findings({ parsed, text, isWhole }: { parsed: ParsedReply; text: string; isWhole: boolean }) {
  const words = useTesterWords();
  const page = useWords();
  const warnings = warningsOf(parsed, isWhole);
  const title = words.found(parsed.requests.length, warnings.length);
  return (
    <>
      <Section title={title}>
        <ol className="grid gap-2">
          {parsed.requests.map((request, at) => (
            <li key={request.start}>
              <RequestRow
                request={request}
                number={at + 1}
                outlook={outlookOf(request, parsed, text, isWhole)}
              />
            </li>
          ))}
          {warnings.map((warning) => (
            <li
              key={`${warning.kind}${warning.at}`}
              className="rounded-control bg-waiting-soft px-3 py-2 text-[12.5px]"
            >
              <code className="font-semibold text-waiting">{warning.kind}</code>{" "}
              {page.serverText(warning.message, warning.kind)}{" "}
              <span className="text-muted">{words.atLine(warning.line, warning.column)}</span>
            </li>
          ))}
        </ol>
      </Section>
      <Section title={words.seen}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
        <pre className="pre max-h-48" tabIndex={0}>
          {parsed.text.trim()}
        </pre>
      </Section>
    </>
  );
}

function RequestRow({
  request,
  number,
  outlook,
}: {
  request: ParsedRequest;
  number: number;
  outlook: Outlook;
}) {
  const words = useTesterWords();
  const page = useWords();
  const { tool } = request;
  const reason = request.why ? page.serverText(request.why) : request.rule && page.rule(request.rule);
  const why = outlook === "arriving" ? undefined : reason;
  const facts = [
    request.format,
    request.leaked && words.leaked,
    words.atLine(request.line, request.column),
    why,
  ];
  return (
    <div className="grid gap-1 rounded-card border border-line px-3 py-2">
      <div className="flex flex-wrap items-center gap-2 text-[13px]">
        <span className="call-number" data-fate={outlook}>
          {number}
        </span>
        <ToolIcon name={request.name} source={undefined} />
        <span className="font-mono text-[12.5px] font-semibold [overflow-wrap:anywhere]">
          {request.name || words.unnamed}
        </span>
        <span className="ml-auto flex items-center gap-2">
          <span className="pill" data-look={OUTLOOK_TONES[outlook]}>
            {words.outlook[outlook]}
          </span>
          {tool && (
            <button
              type="button"
              className="button"
              aria-label={words.tryCallOf(tool)}
              onClick={() => go(testerAddress(tool, request.arguments ?? {}))}
            >
              {words.tryCall}
            </button>
          )}
        </span>
      </div>
      {request.arguments !== null && (
        <code className="text-muted [overflow-wrap:anywhere]">{JSON.stringify(request.arguments)}</code>
      )}
      <p className="text-[12px] text-muted">{facts.filter(Boolean).join(" · ")}</p>
    </div>
  );
}
