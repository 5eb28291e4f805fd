// Script of the bench model: mixed Markdown in two languages, one token per piece, with calls in between. Always the same.

/** Parameters in the question: `rate=300 seconds=60 cards=30`. */
export interface Load {
  /** Pieces per second; 0: all at once. */
  rate: number;
  seconds: number;
  cards: number;
  /** Rows of each result. */
  rows: number;
}

export type Piece =
  | { kind: "text"; text: string }
  /** A stamp: a visible number, to detect it on the screen. */
  | { kind: "stamp"; text: string; stamp: number }
  | { kind: "open"; call: number }
  | { kind: "arguments"; call: number; text: string }
  /** The model waits for its tools. */
  | { kind: "step" };

/** Length of a token in characters: an average of English and Chinese. */
const TOKEN = { least: 2, most: 6 };
/** Tokens between stamps. */
const STAMP_EVERY = 40;
/** Calls per step; the text continues after each. */
export const CALLS_A_STEP = 3;
const FRAGMENT = 6;
/** Tokens per second if everything is sent at once. */
const AT_ONCE = 300;

/** Delimiters that occur in no word of the text, and in no markup. */
export const stampText = (stamp: number): string => `§${stamp}§`;

export function piecesOf(load: Load): Piece[] {
  const random = dice(7);
  const tokens = Math.max(1, (load.rate || AT_ONCE) * load.seconds);
  const every = load.cards > 0 ? Math.floor(tokens / (load.cards + 1)) : Number.POSITIVE_INFINITY;
  const pieces: Piece[] = [];
  const text = prose(random);
  let [stamps, calls] = [0, 0];
  for (let token = 0; token < tokens; token += 1) {
    const length = TOKEN.least + Math.floor(random() * (TOKEN.most - TOKEN.least + 1));
    pieces.push({ kind: "text", text: text.take(length) });
    const isLast = token === tokens - 1;
    if (isLast || (token % STAMP_EVERY === STAMP_EVERY - 1 && text.isInWords())) {
      stamps += 1;
      pieces.push({ kind: "stamp", stamp: stamps, text: `${stampText(stamps)} ` });
    }
    if (calls < load.cards && token % every === Math.floor(every / 2)) {
      pieces.push(...call(calls, random, load.rows));
      calls += 1;
    }
    // Text follows each call, so half of the text between two calls comes before the end of a step.
    const isFull = calls > 0 && (calls % CALLS_A_STEP === 0 || calls === load.cards);
    if (isFull && token === calls * every - 1) pieces.push({ kind: "step" });
  }
  return pieces;
}

function call(number: number, random: () => number, rows: number): Piece[] {
  const text = JSON.stringify({
    query: words(random, 6),
    path: `src/${number}.rs`,
    limit: rows,
    filters: { kind: "symbol", tags: words(random, 4).split(" ") },
  });
  const pieces: Piece[] = [{ kind: "open", call: number }];
  for (let at = 0; at < text.length; at += FRAGMENT) {
    pieces.push({ kind: "arguments", call: number, text: text.slice(at, at + FRAGMENT) });
  }
  return pieces;
}

/** Sections one after another: a heading, a list, code, a table, a quotation. */
function prose(random: () => number) {
  let [section, rest] = [0, ""];
  return {
    take(length: number): string {
      while (rest.length < length) {
        rest += sectionOf(section, random);
        section += 1;
      }
      const taken = rest.slice(0, length);
      rest = rest.slice(length);
      return taken;
    },
    /** True if a word can be inserted here without changing the markup. */
    isInWords: (): boolean => /^ ?[\p{L}]+ [\p{L}]/u.test(rest),
  };
}

function sectionOf(at: number, random: () => number): string {
  const some = (n: number): string => words(random, n);
  const lines = (n: number, line: (at: number) => string): string =>
    Array.from({ length: n }, (_, at) => line(at)).join("\n");
  switch (at % 5) {
    case 0:
      return `## ${some(4)}\n\n${some(40)}. **${some(3)}** ${some(18)} \`${some(1)}\`.\n\n`;
    case 1:
      return `${some(30)}:\n\n- ${some(8)}\n- ${some(9)} [link](https://example.com/a)\n- ${some(6)}\n\n`;
    case 2:
      return `\`\`\`ts\n${lines(9, (n) => `export const v${n} = await call("${some(2)}", { n: ${n}, ok: true });`)}\n\`\`\`\n\n`;
    case 3:
      return `| name | ms | status |\n| --- | ---: | --- |\n${lines(5, (n) => `| ${some(2)} | ${n * 37} | ok |`)}\n\n`;
    default:
      return `1. ${some(12)}\n2. ${some(14)}\n\n> ${some(22)}\n\n`;
  }
}

const WORDS =
  "the engine streams tokens while tools run in parallel and every block keeps its own identity so 流式 工具 调用 在 同一 条 消息 里 连续 输出 参数 实时 填充 结果 折叠 显示 latency budget parser frame schema retry cancel approve".split(
    " ",
  );

export function words(random: () => number, count: number): string {
  return Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(" ");
}

/** Random numbers from 0 to 1, the same in every run. */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}
