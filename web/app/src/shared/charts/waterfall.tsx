import type { WaterfallInfo } from "@throughline/client";
import { useMemo } from "react";
import { type HistoryWords, useHistoryWords } from "../../history/words.ts";
import { Axis } from "./axis.tsx";
import { partsOf, sumOf } from "./parts.ts";

interface WaterfallProps {
  waterfall: WaterfallInfo;
  /** Name of a call of the turn. */
  nameOf(toolId: string): string | undefined;
  /** Id of the call whose row is highlighted. */
  current?: string;
}

/** Time of a turn by kind: a table with a bar in each row. */
export function Waterfall({ waterfall, nameOf, current }: WaterfallProps) {
  const texts = useHistoryWords();
  const parts = useMemo(() => partsOf(waterfall.segments), [waterfall]);
  const whole = sumOf(parts);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <section className="max-h-105 overflow-auto" tabIndex={0}>
      <table className="waterfall">
        <caption className="sr-only">{texts.turnTime}</caption>
        <thead>
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in this row takes the focus */}
          <tr aria-hidden="true">
            <td>
              <Axis whole={whole} />
            </td>
          </tr>
          <tr className="sr-only">
            <th scope="col">{texts.phase}</th>
            <th scope="col">{texts.time}</th>
          </tr>
        </thead>
        <tbody>
          {parts.map(({ kind, toolId, offset, ms }) => (
            <tr key={offset} data-current={toolId !== undefined && toolId === current}>
              <th scope="row">
                <i aria-hidden="true" className="kind" data-kind={kind} />
                {kindWord(kind, texts)}
                {toolId !== undefined && <code>{nameOf(toolId)}</code>}
                <Bar kind={kind} from={offset} ms={ms} whole={whole} />
              </th>
              <td data-ms={ms}>{texts.ms(ms)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{texts.total}</th>
            <td data-ms={whole}>{texts.ms(whole)}</td>
          </tr>
        </tfoot>
      </table>
    </section>
  );
}

/** Minimum share of the axis, so that short bars stay visible. */
const SHARE_MIN = 0.006;

function Bar({ kind, from, ms, whole }: { kind: string; from: number; ms: number; whole: number }) {
  const width = Math.max(ms, whole * SHARE_MIN);
  return (
    <svg
      aria-hidden="true"
      className="bar"
      viewBox={`0 0 ${whole} 1`}
      preserveAspectRatio="none"
      data-kind={kind}
    >
      <rect className="track" width={whole} height={1} />
      <rect x={Math.min(from, whole - width)} width={width} height={1} />
    </svg>
  );
}

/** Kinds of later releases are shown by name. */
function kindWord(kind: string, texts: HistoryWords): string {
  const names: Readonly<Record<string, string>> = texts.segment;
  return names[kind] ?? kind;
}
