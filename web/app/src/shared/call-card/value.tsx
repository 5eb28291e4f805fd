import { isLarge, pretty, type Shape, shapeOf, textOf } from "@throughline/json";
import { type ReactNode, useMemo, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { later } from "../../ui/later.tsx";

// Large values are rare.
const Large = later(() => import("./large.tsx"));

type View = "table" | "tree" | "raw";

/** View of a value: rows as a table, other JSON as a tree, until the user chooses another one. */
export function useShown(value: unknown): { shape: Shape; view: View; choose(view: View): void } {
  const shape = useMemo(() => shapeOf(value), [value]);
  const [chosen, choose] = useState<View>();
  return { shape, view: chosen ?? (shape.kind === "rows" ? "table" : "tree"), choose };
}

/** A value in the chosen view. */
export function Value({ shape, view, isLive }: { shape: Shape; view: View; isLive: boolean }) {
  const isOfManyParts = useMemo(() => isLarge(shape), [shape]);
  if (shape.kind === "text") return <Raw text={shape.text} isLive={isLive} />;
  if (isOfManyParts && view !== "raw") {
    return <Large shape={shape} view={view} />;
  }
  if (view === "table" && shape.kind === "rows") return <Table columns={shape.columns} rows={shape.rows} />;
  if (view === "raw") return <Raw text={pretty(shape.value)} isLive={isLive} />;
  return (
    <div className="pre font-mono text-[12.5px]">
      <Tree name={undefined} value={shape.value} depth={0} />
    </div>
  );
}

function Raw({ text, isLive }: { text: string; isLive: boolean }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
    <pre className={`pre ${isLive ? "caret" : ""}`} tabIndex={0}>
      {text}
    </pre>
  );
}

/** Choice of the view. */
export function Views({ shape, view, choose }: { shape: Shape; view: View; choose(view: View): void }) {
  const words = useWords();
  if (shape.kind === "text") return null;
  const views: readonly View[] = shape.kind === "rows" ? ["table", "tree", "raw"] : ["tree", "raw"];
  return (
    <div className="segments">
      {views.map((one) => (
        <button key={one} type="button" aria-pressed={view === one} onClick={() => choose(one)}>
          {words[one]}
        </button>
      ))}
    </div>
  );
}

/** Further rows are shown on demand. */
const ROWS_AT_ONCE = 100;

function Table({
  columns,
  rows,
}: {
  columns: readonly string[];
  rows: readonly Readonly<Record<string, unknown>>[];
}) {
  const words = useWords();
  const [shown, setShown] = useState(ROWS_AT_ONCE);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section className="max-h-105 overflow-auto" tabIndex={0}>
        <table className="values">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((row, at) => (
              <tr key={`${at}`}>
                {columns.map((column) => (
                  <td key={column}>{textOf(row[column])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {rows.length > shown && (
        <button type="button" className="button quiet mt-1" onClick={() => setShown(shown + ROWS_AT_ONCE)}>
          {words.more}
        </button>
      )}
    </>
  );
}

/** Deeper levels are folded at first. */
const OPEN_DEPTH = 2;
const CHILDREN_AT_ONCE = 100;

function Tree({ name, value, depth }: { name: string | undefined; value: unknown; depth: number }) {
  const words = useWords();
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH);
  const [shown, setShown] = useState(CHILDREN_AT_ONCE);
  const key = name === undefined ? null : <span className="text-code-key">{name}: </span>;
  if (typeof value !== "object" || value === null) {
    return (
      // Leaves align with their siblings, which have arrows.
      <div className="pl-4">
        {key}
        <Leaf value={value} />
      </div>
    );
  }
  const children = Object.entries(value);
  const brackets = Array.isArray(value) ? "[]" : "{}";
  if (children.length === 0) {
    return (
      <div className="pl-4">
        {key}
        {brackets}
      </div>
    );
  }
  return (
    <div>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="min-h-6 text-left"
      >
        <span aria-hidden className={`inline-block w-4 text-muted ${isOpen ? "rotate-90" : ""}`}>
          ›
        </span>
        {key}
        <span className="text-muted">
          {brackets[0]} {children.length} {brackets[1]}
        </span>
      </button>
      {isOpen && (
        <div className="pl-4">
          {children.slice(0, shown).map(
            ([name, child]): ReactNode => (
              <Tree key={name} name={name} value={child} depth={depth + 1} />
            ),
          )}
          {children.length > shown && (
            <button type="button" className="button quiet" onClick={() => setShown(shown + CHILDREN_AT_ONCE)}>
              {words.more}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  const color = typeof value === "string" ? "text-code-text" : "text-code-number";
  return <span className={`${color} whitespace-pre-wrap`}>{JSON.stringify(value)}</span>;
}
