import {
  type Details,
  directionOf,
  type Footnote,
  GrowingMarkdown,
  isFenceClosed,
  type Maths as MathsToken,
  type Passage,
  Passages,
  type Quote,
} from "@throughline/markdown";
import type { MarkedToken, Token, Tokens } from "marked";
import {
  Fragment,
  type JSX,
  memo,
  type ReactNode,
  use,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useWords } from "../../../i18n/use.ts";
import { Code } from "../code.tsx";
import { Maths } from "../maths/maths.tsx";
import { decoded } from "./entities.ts";
import type { Growth } from "./growth.ts";
import { type Footnotes, FootnotesContext, formula, inlines, Jump } from "./inline.tsx";
import { Table } from "./table.tsx";

/** Markdown as elements. Nothing in it becomes markup: HTML is shown as text, except for a few tags. */
export function Markdown({
  text,
  isOpen,
  growth,
}: {
  text: string;
  isOpen: boolean;
  /** Appends characters at the end without rendering. */
  growth?: Growth;
}) {
  const root = useRef<HTMLDivElement>(null);
  const [{ growing, passages }] = useState(() => ({
    growing: new GrowingMarkdown(),
    passages: new Passages(),
  }));
  const shown = useMemo(() => {
    growth?.undo();
    return passages.of(isOpen ? growing.read(text) : growing.complete(text));
  }, [growth, growing, passages, text, isOpen]);
  useLayoutEffect(() => {
    if (isOpen && root.current !== null) growth?.drawn(text, root.current, growing);
  }, [growth, growing, text, isOpen]);
  return (
    <FootnotesContext value={useFootnotes(shown)}>
      <div ref={root} className={`markdown ${isOpen ? "caret-after" : ""}`}>
        {shown.map((passage, at) => (
          <PassageView key={at} passage={passage} />
        ))}
      </div>
    </FootnotesContext>
  );
}

/** The footnotes of a text in order; the same object while they do not change. */
function useFootnotes(passages: readonly Passage[]): Footnotes {
  const prefix = useId();
  const labels = passages
    .map(labelsIn)
    .filter((label) => label !== "")
    .join(" ");
  return useMemo(() => {
    const numbers = new Map<string, number>();
    for (const label of labels.split(" ")) {
      if (label !== "" && !numbers.has(label)) numbers.set(label, numbers.size + 1);
    }
    return { prefix, numbers };
  }, [prefix, labels]);
}

/** Labels of a passage, cached: most passages stay the same while the text grows. */
const labelsOf = new WeakMap<Passage, string>();

function labelsIn(passage: Passage): string {
  const known = labelsOf.get(passage);
  if (known !== undefined) return known;
  const labels = passage.flatMap((token) => (token.type === "footnote" ? (token as Footnote).label : []));
  labelsOf.set(passage, labels.join(" "));
  return labels.join(" ");
}

/** Renders only when the passage changes. */
const PassageView = memo(function PassageView({ passage }: { passage: Passage }) {
  return (
    <div className="passage">
      {passage.map((token, at) => (
        <BlockToken key={at} token={token} />
      ))}
    </div>
  );
});

/** Renders only when the source changes, unless it may contain a link, whose definition can come anywhere later. */
const BlockToken = memo(
  function BlockToken({ token }: { token: Token }) {
    return <>{block(token)}</>;
  },
  ({ token: before }, { token: after }) =>
    before === after || (before.raw === after.raw && !after.raw.includes("[")),
);

type BlockKind = Exclude<MarkedToken, Tokens.Blockquote> | Quote | Footnote | Details | MathsToken;

function block(open: Token): ReactNode {
  // marked's types leave tokens open for extensions: these are ours.
  const token = open as BlockKind;
  switch (token.type) {
    case "heading": {
      // Headings of the page itself are above these levels.
      const Heading = (["h3", "h4", "h5", "h6"] as const)[Math.min(token.depth, 4) - 1] ?? "h6";
      // Below the heading of the message: a text that begins with `##` skips no level.
      const level = Math.min(Math.max(3, token.depth + 1), 6);
      return (
        <Heading dir="auto" aria-level={level}>
          {inlines(token.tokens)}
        </Heading>
      );
    }
    case "paragraph":
      return <p dir="auto">{inlines(token.tokens)}</p>;
    case "text":
      return "tokens" in token && token.tokens ? inlines(token.tokens) : decoded(token.text);
    case "maths":
      return <p dir="auto">{formula(token)}</p>;
    case "code":
      if (token.lang === "math")
        return (
          <p>
            <Maths tex={token.text} raw={token.raw} isDisplay isClosed={isFenceClosed(token.raw)} />
          </p>
        );
      return <Code text={token.text} language={token.lang ?? ""} isClosed={isFenceClosed(token.raw)} />;
    case "blockquote":
      return <Quotation token={token} />;
    case "list":
      return list(token);
    case "table":
      return <Table token={token} />;
    case "hr":
      return <hr />;
    case "footnote":
      return <Note token={token} />;
    case "details":
      return (
        <details open={token.isUnfolded} dir={directionOf(token.raw)}>
          <summary>{token.summary.length > 0 ? inlines(token.summary) : <Unnamed />}</summary>
          {blocks(token.tokens)}
        </details>
      );
    case "html":
      return /^(?:<br\s*\/?>\s*)+$/i.test(token.raw) ? null : <p dir="auto">{token.raw}</p>;
    case "space":
    case "def":
    case "checkbox":
      return null;
    default:
      return token.raw;
  }
}

function blocks(tokens: readonly Token[] | undefined): ReactNode {
  return tokens?.map((token, at) => <Fragment key={`${at}`}>{block(token)}</Fragment>);
}

function list(token: Tokens.List): JSX.Element {
  const { items, ordered, start } = token;
  const drawn = items.map((item, at) => (
    <li key={`${at}`} className={item.task ? "task" : undefined} dir={directionOf(ownText(item))}>
      {item.task ? task(item) : blocks(item.tokens)}
    </li>
  ));
  const dir = directionOf(token.raw);
  return ordered ? (
    <ol dir={dir} start={start === "" ? 1 : start}>
      {drawn}
    </ol>
  ) : (
    <ul dir={dir}>{drawn}</ul>
  );
}

/** Text of a list item without its mark. */
function ownText({ tokens, text }: Tokens.ListItem): string {
  return tokens.find(({ type }) => type === "text" || type === "paragraph")?.raw ?? text;
}

/** A checkbox labelled by the text of its own item, without nested items. */
function task({ checked, tokens }: Tokens.ListItem): ReactNode {
  const at = tokens.findIndex(({ type }) => type === "text" || type === "paragraph");
  const texts = tokens[at];
  if (texts === undefined) return blocks(tokens);
  const label = (
    <label>
      <input type="checkbox" checked={checked === true} disabled />
      {inlines("tokens" in texts ? texts.tokens : [texts])}
    </label>
  );
  return (
    <>
      {texts.type === "paragraph" ? <p dir="auto">{label}</p> : label}
      {blocks(tokens.slice(at + 1))}
    </>
  );
}

function Quotation({ token }: { token: Quote }) {
  const words = useWords();
  const { alert, tokens, text } = token;
  if (alert === undefined) return <blockquote dir={directionOf(text)}>{blocks(tokens)}</blockquote>;
  return (
    <blockquote className="alert" data-alert={alert} dir={directionOf(tokens.map(({ raw }) => raw).join(""))}>
      <p className="alert-title">{words.alerts[alert]}</p>
      {blocks(tokens)}
    </blockquote>
  );
}

/** A footnote at its definition: the number links back to the reference. */
function Note({ token: { label, tokens } }: { token: Footnote }) {
  const words = useWords();
  const { prefix, numbers } = use(FootnotesContext);
  const number = numbers.get(label);
  return (
    <div className="footnote" id={`${prefix}note-${number}`} tabIndex={-1} role="note">
      <span className="footnote-number">
        <Jump to={`${prefix}ref-${number}`} label={words.footnoteBack(number ?? 0)}>
          {number}
        </Jump>
      </span>
      <div>{blocks(tokens)}</div>
    </div>
  );
}

function Unnamed() {
  return <>{useWords().details}</>;
}
