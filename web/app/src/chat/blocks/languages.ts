// Highlighted languages: each an ordered list of patterns, the first match wins.

export type Color = "key" | "text" | "number" | "name" | "remark" | "added" | "removed";

/**
 * A color, or `word`: then the word lists of the language and the text after it decide. No pattern has a capturing group,
 * and none backtracks, so matching takes linear time.
 */
export type Rule = readonly [Color | "word", string];

export interface Language {
  readonly rules: readonly Rule[];
  readonly keys: ReadonlySet<string>;
  readonly values: ReadonlySet<string>;
  /** Whether a word that begins with a capital is the name of a type. */
  readonly hasTypes: boolean;
  readonly ignoresCase: boolean;
}

const DOUBLE: Rule = ["text", String.raw`"(?:\\[^]|[^"\\\n])*"?`];
const SINGLE: Rule = ["text", String.raw`'(?:\\[^]|[^'\\\n])*'?`];
const TEMPLATE: Rule = ["text", "`(?:\\\\[^]|[^`\\\\])*`?"];
const SLASHES: Rule = ["remark", String.raw`\/\/.*|\/\*[^]*?(?:\*\/|$)`];
const HASH: Rule = ["remark", String.raw`(?<!\S)#.*`];
const NUMBER: Rule = [
  "number",
  String.raw`(?<![\w.])(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)\w*`,
];
const WORD: Rule = ["word", String.raw`[\p{L}_$][\p{L}\d_$]*`];

/** Names of all languages. */
export const languageNames = (): readonly string[] => Object.keys(LANGUAGES);

function language(
  rules: readonly Rule[],
  keys: string,
  values: string,
  more: Partial<Language> = {},
): Language {
  const set = (words: string) => new Set(words.split(" "));
  return { rules, keys: set(keys), values: set(values), hasTypes: true, ignoresCase: false, ...more };
}

const CONTROL = "if else for while do switch case default break continue return";

const LANGUAGES: Readonly<Record<string, Language>> = {
  bash: language(
    [
      HASH,
      ["text", String.raw`"(?:\\[^]|[^"\\])*"?|'[^']*'?`],
      ["name", String.raw`\$(?:\w+|\{[^}\n]*\}?|[@#?$!*-])`],
      NUMBER,
      WORD,
    ],
    "if then else elif fi for in while until do done case esac function return exit export local readonly unset source alias set shift trap exec eval sudo cd echo",
    "true false",
    { hasTypes: false },
  ),
  cpp: language(
    [SLASHES, ["key", String.raw`(?<=^|\n)[ \t]*#[ \t]*\w+`], DOUBLE, SINGLE, NUMBER, WORD],
    `${CONTROL} goto auto bool char class const constexpr delete double enum explicit extern final float friend inline int long mutable namespace new noexcept operator override private protected public register short signed sizeof static struct template this throw try catch typedef typename union unsigned using virtual void volatile`,
    "true false nullptr NULL",
  ),
  css: language(
    [
      ["remark", String.raw`\/\*[^]*?(?:\*\/|$)`],
      DOUBLE,
      SINGLE,
      ["key", String.raw`@[\w-]+|!important`],
      ["number", String.raw`#[\da-fA-F]{3,8}\b(?=[^{}]{0,400}[;}])`],
      // A name, a colon, and the end of a declaration before any brace.
      [
        "name",
        String.raw`(?<![\w-])[\w-]+(?=\s{0,40}:[^{}]{0,400}[;}])|(?<![\w-])[\w-]+(?=\()|[.#][a-zA-Z_-][\w-]*`,
      ],
      ["number", String.raw`(?<![\w-])[-+]?(?:\d+\.?\d*|\.\d+)(?:%|[a-z]+)?`],
      ["key", String.raw`(?<![\w-])[a-z][\w-]*(?=[^;{}]{0,400}\{)`],
    ],
    "",
    "",
  ),
  diff: language(
    [
      [
        "remark",
        String.raw`(?<=^|\n)(?:diff |index |--- |\+\+\+ |similarity |rename |new file |deleted file ).*`,
      ],
      ["key", String.raw`(?<=^|\n)@@.*`],
      ["added", String.raw`(?<=^|\n)\+.*`],
      ["removed", String.raw`(?<=^|\n)-.*`],
    ],
    "",
    "",
  ),
  go: language(
    [SLASHES, DOUBLE, TEMPLATE, SINGLE, NUMBER, WORD],
    `${CONTROL} chan const defer fallthrough func go goto import interface map package range select struct type var string int int64 bool byte rune error any`,
    "true false nil iota",
  ),
  java: language(
    [SLASHES, ["key", String.raw`@\w+`], ["text", `"""[^]*?(?:"""|$)`], DOUBLE, SINGLE, NUMBER, WORD],
    `${CONTROL} abstract assert boolean byte catch char class double enum extends final finally float implements import instanceof int interface long native new package private protected public record sealed short static super synchronized this throw throws try var void volatile yield`,
    "true false null",
  ),
  json: language(
    [
      SLASHES,
      ["name", String.raw`"(?:\\[^]|[^"\\\n])*"(?=\s*:)`],
      DOUBLE,
      ["number", String.raw`-?\d[\d.eE+-]*`],
      WORD,
    ],
    "",
    "true false null",
    { hasTypes: false },
  ),
  python: language(
    [
      ["remark", "#.*"],
      ["key", String.raw`(?<=^|\n)[ \t]*@[\w.]+`],
      ["text", String.raw`\b[rRbBfFuU]{1,2}(?=["'])|"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)`],
      DOUBLE,
      SINGLE,
      NUMBER,
      WORD,
    ],
    "and as assert async await break class continue def del elif else except finally for from global if import in is lambda match case nonlocal not or pass raise return try while with yield self",
    "True False None",
  ),
  rust: language(
    [
      SLASHES,
      ["key", String.raw`#!?\[[^\]\n]*\]`],
      ["text", String.raw`\bb?r#"[^]*?(?:"#|$)|"(?:\\[^]|[^"\\])*"?|'(?:\\[^\n']+|[^'\\\n])'`],
      ["key", String.raw`'[a-z_]\w*`],
      NUMBER,
      ["name", String.raw`\b[a-z_]\w*!(?=\s*[([{])`],
      WORD,
    ],
    "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self static struct super trait type union unsafe use where while",
    "true false",
  ),
  sql: language(
    [
      ["remark", String.raw`--.*|\/\*[^]*?(?:\*\/|$)`],
      ["text", "'(?:''|[^'])*'?"],
      ["name", '"[^"\\n]*"?|`[^`\\n]*`?'],
      NUMBER,
      WORD,
    ],
    "select from where and or not in is like between exists case when then else end as on join left right inner outer full cross union all distinct order by group having limit offset insert into values update set delete create table index view drop alter add column primary key foreign references unique default constraint check if with recursive returning begin commit rollback transaction asc desc using over partition",
    "null true false",
    { ignoresCase: true, hasTypes: false },
  ),
  typescript: language(
    [SLASHES, DOUBLE, SINGLE, TEMPLATE, NUMBER, WORD],
    `${CONTROL} abstract as async await catch class const declare delete enum export extends finally from function get implements import in instanceof interface keyof let namespace new of override private protected public readonly satisfies set static super this throw try type typeof var void with yield string number boolean any unknown never`,
    "true false null undefined NaN Infinity",
  ),
  xml: language(
    [
      ["remark", "<!--[^]*?(?:-->|$)"],
      ["key", "<[!?][^>]*>?"],
      ["name", String.raw`(?<=<\/?)[A-Za-z][\w:.-]*`],
      ["text", String.raw`"(?<==\s{0,40}")[^"]*"?|'(?<==\s{0,40}')[^']*'?`],
      ["name", String.raw`(?<![\w:@.-])[\w:@.-]+(?=\s{0,40}=\s{0,40}["'])`],
      ["number", String.raw`&#?\w+;`],
    ],
    "",
    "",
  ),
};

/** Other names of languages in fences. */
const ALIASES: Readonly<Record<string, string>> = {
  c: "cpp",
  "c++": "cpp",
  cs: "java",
  csharp: "java",
  golang: "go",
  h: "cpp",
  html: "xml",
  javascript: "typescript",
  js: "typescript",
  jsonc: "json",
  jsonl: "json",
  jsx: "typescript",
  kotlin: "java",
  patch: "diff",
  py: "python",
  rs: "rust",
  scss: "css",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  ts: "typescript",
  tsx: "typescript",
  vue: "xml",
  zsh: "bash",
};

export function languageOf(word: string): Language | undefined {
  const name = word.toLowerCase();
  const called = Object.hasOwn(ALIASES, name) ? (ALIASES[name] ?? name) : name;
  return Object.hasOwn(LANGUAGES, called) ? LANGUAGES[called] : undefined;
}
