import { GrowingMarkdown, isFenceClosed, type Passage, Passages, safeHref } from "@throughline/markdown";
import { Image } from "lucide-react";
import type { MarkedToken, Token, Tokens } from "marked";
import { Fragment, type JSX, memo, type ReactNode, useMemo, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { Code } from "./code.tsx";

/** Markdown as elements. Nothing in it becomes markup: HTML is shown as the text that it is. R: R4 */
export function Markdown({ text, isOpen }: { text: string; isOpen: boolean }) {
  const [{ growing, passages }] = useState(() => ({
    growing: new GrowingMarkdown(),
    passages: new Passages(),
  }));
  const shown = useMemo(
    () => passages.of(isOpen ? growing.read(text) : growing.complete(text)),
    [growing, passages, text, isOpen],
  );
  return (
    <div className={`markdown ${isOpen ? "caret-after" : ""}`}>
      {shown.map((passage, at) => (
        <PassageView key={at} passage={passage} />
      ))}
    </div>
  );
}

/** What has not changed is not looked at. */
const PassageView = memo(function PassageView({ passage }: { passage: Passage }) {
  return (
    <div className="passage">
      {passage.map((token, at) => (
        <BlockToken key={at} token={token} />
      ))}
    </div>
  );
});

/** What reads the same is not drawn again, unless it may have a link, whose address can stand anywhere below. */
const BlockToken = memo(
  function BlockToken({ token }: { token: Token }) {
    return <>{block(token)}</>;
  },
  ({ token: before }, { token: after }) =>
    before === after || (before.raw === after.raw && !after.raw.includes("[")),
);

/** The types leave tokens open for extensions of marked; we have none. */
function known(token: Token): MarkedToken {
  return token as MarkedToken;
}

function block(open: Token): ReactNode {
  const token = known(open);
  switch (token.type) {
    case "heading": {
      // The page's own headings come above.
      const Heading = (["h3", "h4", "h5", "h6"] as const)[Math.min(token.depth, 4) - 1] ?? "h6";
      return <Heading>{inlines(token.tokens)}</Heading>;
    }
    case "paragraph":
      return <p>{inlines(token.tokens)}</p>;
    case "text":
      return "tokens" in token && token.tokens ? inlines(token.tokens) : token.text;
    case "code":
      return <Code text={token.text} language={token.lang ?? ""} isClosed={isFenceClosed(token.raw)} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens)}</blockquote>;
    case "list":
      return list(token);
    case "table":
      return table(token);
    case "hr":
      return <hr />;
    case "html":
      return <p>{token.raw}</p>;
    case "space":
    case "def":
      return null;
    default:
      return token.raw;
  }
}

function blocks(tokens: readonly Token[] | undefined): ReactNode {
  return tokens?.map((token, at) => <Fragment key={`${at}`}>{block(token)}</Fragment>);
}

function list({ items, ordered, start }: Tokens.List): JSX.Element {
  const drawn = items.map((item, at) => (
    <li key={`${at}`} className={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled aria-label={item.text} />}
      {blocks(item.tokens)}
    </li>
  ));
  return ordered ? <ol start={start === "" ? 1 : start}>{drawn}</ol> : <ul>{drawn}</ul>;
}

function table({ header, rows, align }: Tokens.Table): JSX.Element {
  const aligned = (at: number) => ({ textAlign: align[at] ?? undefined });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <div className="scrolls" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map((cell, at) => (
              <th key={`${at}`} style={aligned(at)}>
                {inlines(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={`${at}`}>
              {row.map((cell, column) => (
                <td key={`${column}`} style={aligned(column)}>
                  {inlines(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inlines(tokens: readonly Token[] | undefined): ReactNode {
  return tokens?.map((token, at) => <Fragment key={`${at}`}>{inline(token)}</Fragment>);
}

function inline(open: Token): ReactNode {
  const token = known(open);
  switch (token.type) {
    case "strong":
      return <strong>{inlines(token.tokens)}</strong>;
    case "em":
      return <em>{inlines(token.tokens)}</em>;
    case "del":
      return <del>{inlines(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Outside href={token.href}>{inlines(token.tokens)}</Outside>;
    case "image":
      return <Picture href={token.href} text={token.text} />;
    case "text":
    case "escape":
      return "tokens" in token && token.tokens ? inlines(token.tokens) : token.text;
    default:
      return token.raw;
  }
}

/** A link that leads out, if it leads where a browser may go; else its text. R: R4 */
function Outside({ href, children }: { href: string; children: ReactNode }) {
  const url = safeHref(href);
  if (url === undefined) return <>{children}</>;
  return (
    <a href={url.href} target="_blank" rel="noreferrer noopener" title={url.href}>
      {children}
    </a>
  );
}

/**
 * A picture of another host. Fetched, it would tell that host what was read, so the page's policy lets none in: it is named, and a
 * click loads it beside the page.
 */
function Picture({ href, text }: { href: string; text: string }) {
  const words = useWords();
  const url = safeHref(href);
  if (url === undefined || url.host === "") return <>{text}</>;
  return (
    <a className="picture" href={url.href} target="_blank" rel="noreferrer noopener" title={url.href}>
      <Image aria-hidden size={13} />
      {words.loadImage(url.host)}
      {text !== "" && <span className="text-muted">{text}</span>}
    </a>
  );
}
