import { duration } from "../format.ts";
import { ticksOf } from "./moments.ts";

/** Time axis above the bars of a turn. */
export function Axis({ whole }: { whole: number }) {
  const at = (ms: number): string => `${(ms / whole) * 100}%`;
  return (
    <svg aria-hidden="true" className="axis" width="100%" height="18">
      {ticksOf(whole).map((ms) => (
        <g key={ms}>
          <line x1={at(ms)} x2={at(ms)} y1="13" y2="18" />
          <text x={at(ms)} y="10" textAnchor={ms === 0 ? "start" : ms / whole > 0.94 ? "end" : "middle"}>
            {duration(ms)}
          </text>
        </g>
      ))}
    </svg>
  );
}
