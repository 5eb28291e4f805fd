import type { Token } from "marked";
import { expect, test } from "vitest";
import { read } from "../src/index.ts";

/** Inline formulas as `⟨…⟩`, display formulas as `⟦…⟧`, unclosed ones as `⟦…`. */
function formulas(text: string): string {
  const drawn = (tokens: readonly Token[]): string =>
    tokens
      .map((token): string => {
        if (token.type === "maths") {
          const { text, isDisplay, isClosed } = token as unknown as {
            text: string;
            isDisplay: boolean;
            isClosed: boolean;
          };
          return isDisplay ? `⟦${text}${isClosed ? "⟧" : ""}` : `⟨${text}⟩`;
        }
        if (token.type === "list") return drawn(token.items);
        if ("tokens" in token && token.tokens) return drawn(token.tokens);
        return "text" in token ? token.text : token.raw;
      })
      .join("");
  return drawn(read(text));
}

test.each([
  ["Energy $E=mc^2$.", "Energy ⟨E=mc^2⟩."],
  ["\\(a^2\\) and \\(b\\,c\\)", "⟨a^2⟩ and ⟨b\\,c⟩"],
  ["$$\\int_0^1 x\\,dx$$", "⟦\\int_0^1 x\\,dx⟧"],
  ["\\[\nx = 1\n\\]", "⟦x = 1⟧"],
  ["so $$a$$ inside", "so ⟦a⟧ inside"],
  ["text:\n$$\na\n=\nb\n$$\nmore", "text:⟦a\n=\nb⟧more"],
  ["- item \\(x\\)\n  $$\n  - y\n  $$", "item ⟨x⟩⟦- y⟧"],
  ["$`a_1`$ as GitHub has it", "⟨a_1⟩ as GitHub has it"],
  ["$a_1$ and $b_2$, **with $c*d$ in bold**", "⟨a_1⟩ and ⟨b_2⟩, with ⟨c*d⟩ in bold"],
  ["a * b, \\(c*d\\) and 2*3", "a * b, ⟨c*d⟩ and 2*3"],
  ["$2 + 2 = 4$ and $5 \\text{ apples and pears}$", "⟨2 + 2 = 4⟩ and ⟨5 \\text{ apples and pears}⟩"],
  ["$\\$5$", "⟨\\$5⟩"],
  ["约$x$元，用\\(y\\)表示", "约⟨x⟩元，用⟨y⟩表示"],
  ["值为 $x$，所以 \\(y\\)。", "值为 ⟨x⟩，所以 ⟨y⟩。"],
  // Prices, variables and brackets.
  ["It costs $5 and $10.", "It costs $5 and $10."],
  ["$5/$10, $5-$10, US$5 or CA$6", "$5/$10, $5-$10, US$5 or CA$6"],
  ["from $5 to 10$ each", "from $5 to 10$ each"],
  ["$1,000 or $2,000, $3", "$1,000 or $2,000, $3"],
  ["`$HOME` and `$PATH`, $HOME and $PATH", "$HOME and $PATH, $HOME and $PATH"],
  ["\\$5 and \\$6$", "$5 and $6$"],
  ["array\\[0\\] f\\(x\\)", "array[0] f(x)"],
  ["an open $ or $$", "an open $ or $$"],
  ["```sh\necho $A $B\n```", "echo $A $B"],
  // Unclosed formulas.
  ["$$\na + b", "⟦a + b"],
  ["\\[ a + b", "⟦a + b"],
  ["$$\na\n\nb", "$$\na\n\nb"],
])("%j has the formulas %j", (text, expected) => expect(formulas(text)).toBe(expected));
