import { csvOf, directionOf } from "@throughline/markdown";
import type { Tokens } from "marked";
import { useWords } from "../../../i18n/use.ts";
import { CopyButton } from "../../../ui/copy.tsx";
import { inlines } from "./inline.tsx";

/** A table that scrolls horizontally, with a sticky head. */
export function Table({ token }: { token: Tokens.Table }) {
  const words = useWords();
  const { header, rows, align } = token;
  const dir = directionOf(token.raw);
  const aligned = (at: number) => ({ textAlign: align[at] ?? undefined });
  return (
    <div className="table-frame" dir={dir}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="scrolls" tabIndex={0}>
        <table dir={dir}>
          <thead>
            <tr>
              {header.map((cell, at) => (
                <th key={`${at}`} dir={directionOfCell(cell)} style={aligned(at)}>
                  {inlines(cell.tokens)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={`${at}`}>
                {row.map((cell, column) => (
                  <td key={`${column}`} dir={directionOfCell(cell)} style={aligned(column)}>
                    {inlines(cell.tokens)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <div className="table-copy">
        <CopyButton text={() => csvOf(token)} label={words.copyTable} />
      </div>
    </div>
  );
}

/** Direction of a cell by its own text; numbers follow the table. */
function directionOfCell({ text }: Tokens.TableCell): "auto" | undefined {
  return /\p{L}/u.test(text) ? "auto" : undefined;
}
