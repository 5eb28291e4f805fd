// Inline Markdown as elements.

import {
  type FootnoteRef,
  type Maths as MathsToken,
  plainText,
  type Script,
  safeHref,
} from "@throughline/markdown";
import { Image } from "lucide-react";
import type { MarkedToken, Token } from "marked";
import { createContext, Fragment, type ReactNode, use } from "react";
import { useWords } from "../../../i18n/use.ts";
import { Maths } from "../maths/maths.tsx";
import { decoded } from "./entities.ts";

/** HTML tags that become elements: in pairs and without attributes. All other HTML is shown as text. */
const TAGS = [
  "b",
  "del",
  "em",
  "i",
  "ins",
  "kbd",
  "mark",
  "s",
  "small",
  "strong",
  "sub",
  "sup",
  "u",
] as const;
type Tag = (typeof TAGS)[number];
const PAIRED = new RegExp(`^<(/?)(${TAGS.join("|")})\\s*>$`, "i");
const BREAK = /^<br\s*\/?>$/i;
/** Nesting limit of tags; deeper ones are shown as text. */
const TAG_DEPTH_MAX = 12;

/** The footnotes of a text: their numbers by label, and the prefix of their ids. */
export interface Footnotes {
  readonly prefix: string;
  readonly numbers: ReadonlyMap<string, number>;
}

export const FootnotesContext = createContext<Footnotes>({ prefix: "", numbers: new Map() });

type InlineToken = MarkedToken | FootnoteRef | Script | MathsToken;

export function inlines(tokens: readonly Token[] | undefined): ReactNode {
  if (tokens === undefined) return null;
  return tokens.some(({ type }) => type === "html") ? withTags(tokens) : plainInlines(tokens);
}

function plainInlines(tokens: readonly Token[]): ReactNode {
  return tokens.map((token, at) => <Fragment key={`${at}`}>{inline(token)}</Fragment>);
}

function withTags(tokens: readonly Token[]): ReactNode {
  const ends = pairs(tokens);
  const drawn: ReactNode[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at];
    if (token === undefined) continue;
    const pair = ends.get(at);
    if (pair === undefined) {
      drawn.push(<Fragment key={`${at}`}>{inline(token)}</Fragment>);
      continue;
    }
    const Element = pair.tag;
    drawn.push(<Element key={`${at}`}>{inlines(tokens.slice(at + 1, pair.end))}</Element>);
    at = pair.end;
  }
  return drawn;
}

/** Positions of paired tags: each opening with its closing tag. */
function pairs(tokens: readonly Token[]): ReadonlyMap<number, { tag: Tag; end: number }> {
  const ends = new Map<number, { tag: Tag; end: number }>();
  const open: { tag: Tag; at: number }[] = [];
  tokens.forEach((token, at) => {
    const [, slash, name] = token.type === "html" ? (PAIRED.exec(token.raw) ?? []) : [];
    const tag = TAGS.find((one) => one === name?.toLowerCase());
    if (tag === undefined) return;
    if (slash === "") {
      if (open.length < TAG_DEPTH_MAX) open.push({ tag, at });
      return;
    }
    const last = open.findLastIndex((one) => one.tag === tag);
    const [begin] = last === -1 ? [] : open.splice(last);
    if (begin !== undefined) ends.set(begin.at, { tag, end: at });
  });
  return ends;
}

export function inline(open: Token): ReactNode {
  const token = open as InlineToken;
  switch (token.type) {
    case "strong":
      return <strong>{inlines(token.tokens)}</strong>;
    case "em":
      return <em>{inlines(token.tokens)}</em>;
    case "del":
      return <del>{inlines(token.tokens)}</del>;
    case "sub":
      return <sub>{token.text}</sub>;
    case "sup":
      return <sup>{token.text}</sup>;
    case "codespan":
      return <code dir="ltr">{token.text}</code>;
    case "br":
      return <br />;
    case "html":
      return BREAK.test(token.raw) ? <br /> : token.raw;
    case "link":
      return <Outside href={token.href}>{inlines(token.tokens)}</Outside>;
    case "image":
      return <Picture href={token.href} text={decoded(plainText(token.tokens))} />;
    case "maths":
      return formula(token);
    case "footnote_ref":
      return <Reference label={token.label} raw={token.raw} />;
    case "checkbox":
      return null;
    case "escape":
      return token.text;
    case "text":
      return "tokens" in token && token.tokens ? inlines(token.tokens) : decoded(token.text);
    default:
      return token.raw;
  }
}

export function formula({ text, raw, isDisplay, isClosed }: MathsToken): ReactNode {
  return <Maths tex={text} raw={raw} isDisplay={isDisplay} isClosed={isClosed} />;
}

/** Number of a footnote; its source while the footnote is missing. */
function Reference({ label, raw }: { label: string; raw: string }) {
  const words = useWords();
  const { prefix, numbers } = use(FootnotesContext);
  const number = numbers.get(label);
  if (number === undefined) return <>{raw}</>;
  return (
    <sup className="footnote-ref">
      <Jump from={`${prefix}ref-${number}`} to={`${prefix}note-${number}`} label={words.footnote(number)}>
        {number}
      </Jump>
    </sup>
  );
}

/** A link within the message, which does not change the address. */
export function Jump({
  from,
  to,
  label,
  children,
}: {
  from?: string;
  to: string;
  label: string;
  children: ReactNode;
}) {
  return (
    <a
      id={from}
      href={`#${to}`}
      aria-label={label}
      onClick={(event) => {
        event.preventDefault();
        const target = document.getElementById(to);
        target?.scrollIntoView({ block: "nearest" });
        target?.focus({ preventScroll: true });
      }}
    >
      {children}
    </a>
  );
}

/** An external link, if its address is safe; else its text. */
function Outside({ href, children }: { href: string; children: ReactNode }) {
  const url = safeHref(decoded(href));
  if (url === undefined) return <>{children}</>;
  return (
    <a href={url.href} target="_blank" rel="noreferrer noopener" title={url.href}>
      {children}
    </a>
  );
}

/**
 * A picture of another host. Loading it would tell that host what was read, so the page's policy allows none: it is shown as a link
 * with its name.
 */
function Picture({ href, text }: { href: string; text: string }) {
  const words = useWords();
  const url = safeHref(decoded(href));
  if (url === undefined || url.host === "") return <>{text}</>;
  return (
    <a className="picture" href={url.href} target="_blank" rel="noreferrer noopener" title={url.href}>
      <Image aria-hidden size={13} />
      {words.loadImage(url.host)}
      {text !== "" && <span className="text-muted">{text}</span>}
    </a>
  );
}
