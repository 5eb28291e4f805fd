import type { DecodedRecording, Throughline } from "@throughline/client";
import { FileUp, Play } from "lucide-react";
import { type DragEvent, useCallback, useMemo, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { language } from "../preferences.ts";
import { useClient } from "../session/context.tsx";
import { Section } from "../shared/call-card/section.tsx";
import { size } from "../shared/format.ts";
import { Failure } from "../ui/failure.tsx";
import { later } from "../ui/later.tsx";
import { Panel } from "../ui/panel.tsx";
import { useRequest } from "../ui/use-request.ts";
import { Controls } from "./controls.tsx";
import { usePlaying } from "./play.ts";
import { useRecordedWords } from "./recorded-words.ts";
import { useTesterWords } from "./words.ts";

const Shown = later(async () => ({ default: (await import("../chat/answers.tsx")).Shown }));

const APIS = [
  "openai-chat",
  "openai-responses",
  "anthropic",
  "gemini",
  "ollama",
  "cohere",
  "bedrock-converse",
  "bedrock-anthropic",
] as const;

type Api = (typeof APIS)[number];

/** A recorded reply of an upstream: the result of the decoder, rendered like the chat. */
export default function RecordedView() {
  const texts = useRecordedWords();
  const client = useClient();
  const [file, setFile] = useState<File>();
  const [api, setApi] = useState<Api>();
  const ask = useCallback((signal: AbortSignal) => decode(client, file, api, signal), [client, file, api]);
  const { to, value, error } = useRequest(file && ask);
  const isAnswered = to === ask;
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    setFile(event.dataTransfer.files[0] ?? file);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a file can be chosen as well
    <div
      className="col-span-full grid grid-cols-[minmax(0,1fr)] gap-4"
      onDragOver={(event) => event.preventDefault()}
      onDrop={drop}
    >
      <Panel
        title={texts.recording}
        side={
          <label className="flex items-center gap-1.5 text-[12.5px] text-muted">
            {texts.api}
            <select
              value={api ?? ""}
              onChange={(event) => setApi(APIS.find((one) => one === event.currentTarget.value))}
              className="field w-auto py-1"
            >
              <option value="">{texts.anyApi}</option>
              {APIS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        }
      >
        <div className="panel-body">
          <p className="flex flex-wrap items-center gap-3 text-[13px] text-muted">
            <label className="button has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-accent">
              <FileUp aria-hidden size={14} />
              {texts.choose}
              <input
                type="file"
                className="sr-only"
                onChange={(event) => setFile(event.currentTarget.files?.[0] ?? file)}
              />
            </label>
            {file ? `${file.name} · ${size(file.size)}` : texts.how}
          </p>
          {isAnswered && error !== undefined && <Failure error={error} />}
          {isAnswered && error === undefined && value && <Findings decoded={value} />}
        </div>
      </Panel>
      {isAnswered && error === undefined && value && value.pieces.length > 0 && (
        <Drawn key={`${file?.name}${value.api}${value.bytes}`} decoded={value} />
      )}
    </div>
  );
}

async function decode(
  client: Throughline,
  file: File | undefined,
  api: Api | undefined,
  signal: AbortSignal,
): Promise<DecodedRecording> {
  const body = new FormData();
  if (file) body.append("file", file);
  const query = { language: language.get(), ...(api && { api }) };
  return await client.call("POST /v1/decode", { query, body, signal });
}

/** Type of the recording, its errors with their positions, and remedies. */
function Findings({ decoded }: { decoded: DecodedRecording }) {
  const texts = useRecordedWords();
  const page = useWords();
  const { usage, calls, problems, mistakes } = decoded;
  const facts = [
    decoded.api,
    texts.end(decoded.end),
    decoded.finish,
    usage && texts.usage(usage.input_tokens, usage.output_tokens),
    texts.found(calls.length, problems.length),
  ];
  return (
    <>
      <p role="status" className="text-[13px]">
        {facts.filter(Boolean).join(" · ")}
      </p>
      {decoded.error && (
        <p className="rounded-control bg-error-soft px-3 py-2 text-[13px]">{decoded.error}</p>
      )}
      {mistakes.map(({ code, what, remedy }) => (
        <p key={code} className="rounded-control bg-error-soft px-3 py-2 text-[13px]">
          <code className="font-semibold text-error">{code}</code> {what}
          <br />
          <strong>{page.remedy}: </strong>
          {remedy}
        </p>
      ))}
      {problems.length > 0 && (
        <ol className="grid max-h-60 gap-2 overflow-auto">
          {problems.map(({ kind, at, line, message, excerpt }) => (
            <li key={`${kind}${at}`} className="rounded-control bg-waiting-soft px-3 py-2 text-[12.5px]">
              <code className="font-semibold text-waiting">{kind}</code> {message}{" "}
              <span className="text-muted">{texts.line(line)}</span>
              {excerpt && <code className="block text-muted [overflow-wrap:anywhere]">{excerpt}</code>}
            </li>
          ))}
        </ol>
      )}
      {calls.length > 0 && (
        <Section title={texts.calls}>
          <ol className="grid gap-1">
            {calls.map(({ name, arguments: given, raw }, at) => (
              <li key={at} className="[overflow-wrap:anywhere]">
                <code className="font-semibold">{name}</code>{" "}
                <code className="text-muted">{raw ?? JSON.stringify(given)}</code>
              </li>
            ))}
          </ol>
        </Section>
      )}
    </>
  );
}

/** The reply as in the chat: complete, or played back. */
function Drawn({ decoded }: { decoded: DecodedRecording }) {
  const texts = useRecordedWords();
  const words = useTesterWords();
  const { pieces } = decoded;
  const [perSecond, setPerSecond] = useState(20);
  const after = useCallback((at: number) => Math.min(at + 1, pieces.length), [pieces]);
  const playing = usePlaying({ length: pieces.length, after, perSecond }, () => true);
  const at = playing.at ?? pieces.length;
  const events = useMemo(() => pieces.flatMap(({ events }) => events), [pieces]);
  const count = pieces.slice(0, at).reduce((sum, { events }) => sum + events.length, 0);
  return (
    <Panel
      title={texts.drawn}
      side={
        <button
          type="button"
          className="button"
          onClick={playing.at === undefined ? playing.start : playing.end}
        >
          {playing.at === undefined && <Play aria-hidden size={13} />}
          {playing.at === undefined ? words.play : texts.whole}
        </button>
      }
    >
      <div className="panel-body">
        {playing.at !== undefined && (
          <Controls
            playing={playing}
            perSecond={perSecond}
            setPerSecond={setPerSecond}
            isOver={at >= pieces.length}
            text={texts.line(pieces[at - 1]?.line ?? 0)}
          />
        )}
        {decoded.pieces_cut && <p className="text-[13px] text-muted">{texts.cut}</p>}
        <Shown events={events} count={count} />
      </div>
    </Panel>
  );
}
