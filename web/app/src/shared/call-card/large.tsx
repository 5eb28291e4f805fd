import { useVirtualizer } from "@tanstack/react-virtual";
import { rowsOfTableWith, rowsOfTree, rowsWith, type Shape, type TreeRow, textOf } from "@throughline/json";
import {
  type KeyboardEvent,
  type ReactNode,
  useDeferredValue,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { useLargeWords } from "./large-words.ts";

const ROW_PX = 26;
/** Deeper levels are folded at first: in a long list, each row. */
const OPEN_DEPTH = 1;

/** Viewer for a value of any size: only visible rows are in the DOM. Loaded with the first large value. */
export default function Large({
  shape,
  view,
}: {
  shape: Exclude<Shape, { kind: "text" }>;
  view: "table" | "tree";
}) {
  const [search, setSearch] = useState("");
  const wanted = useDeferredValue(search.trim());
  const props = { wanted, search, setSearch };
  if (view === "table" && shape.kind === "rows") return <LargeTable shape={shape} {...props} />;
  return <LargeTree value={shape.value} {...props} />;
}

interface SearchProps {
  wanted: string;
  search: string;
  setSearch(text: string): void;
}

function Search({ search, setSearch, status }: Omit<SearchProps, "wanted"> & { status: string }) {
  const texts = useLargeWords();
  return (
    <div className="mb-1.5 flex flex-wrap items-center gap-x-3 gap-y-1">
      <input
        type="search"
        value={search}
        placeholder={texts.search}
        aria-label={texts.search}
        onChange={(event) => setSearch(event.currentTarget.value)}
        className="field h-8 min-[520px]:!w-60"
      />
      <p role="status" className="text-[12.5px] text-muted tabular-nums">
        {status}
      </p>
    </div>
  );
}

function useRows(count: number) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    useFlushSync: false,
  });
  const shown = virtual.getVirtualItems();
  const above = shown[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return { scroller, shown, above, below };
}

function LargeTable({
  shape: { columns, rows },
  wanted,
  ...search
}: SearchProps & { shape: Extract<Shape, { kind: "rows" }> }) {
  const texts = useLargeWords();
  const found = useMemo(() => rowsOfTableWith(rows, wanted), [rows, wanted]);
  const { scroller, shown, above, below } = useRows(found.length);
  return (
    <>
      <Search
        {...search}
        status={wanted === "" ? texts.rows(rows.length) : texts.rowsFound(found.length, rows.length)}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <section ref={scroller} className="max-h-105 overflow-auto" tabIndex={0}>
        <table className="values large" aria-rowcount={found.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            <Spacer px={above} />
            {shown.map(({ index }) => (
              <tr key={index} aria-rowindex={index + 2}>
                {columns.map((column) => {
                  const text = textOf(found[index]?.[column]);
                  return (
                    <td key={column} title={text.length > 40 ? text.slice(0, 2_000) : undefined}>
                      {text}
                    </td>
                  );
                })}
              </tr>
            ))}
            <Spacer px={below} />
          </tbody>
        </table>
      </section>
    </>
  );
}

/** Space of the rows that are not in the DOM. */
function Spacer({ px }: { px: number }) {
  if (px <= 0) return null;
  return (
    <tr aria-hidden className="spacer" style={{ height: px }}>
      <td />
    </tr>
  );
}

function LargeTree({ value, wanted, ...search }: SearchProps & { value: unknown }) {
  const texts = useLargeWords();
  // A card has one tree for its arguments and one for its output.
  const tree = useId();
  const [flipped, setFlipped] = useState<ReadonlySet<string>>(new Set());
  const { rows, hits } = useMemo(
    () =>
      wanted === ""
        ? { rows: rowsOfTree(value, { depth: OPEN_DEPTH, flipped }), hits: undefined }
        : rowsWith(value, wanted),
    [value, wanted, flipped],
  );
  const [at, setAt] = useState(0);
  const { scroller, shown, above, below } = useRows(rows.length);
  const flip = (path: string): void =>
    setFlipped((before) => {
      const next = new Set(before);
      if (!next.delete(path)) next.add(path);
      return next;
    });
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[at];
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -at, End: rows.length }[
      event.key
    ];
    if (step !== undefined) {
      event.preventDefault();
      const next = Math.min(rows.length - 1, Math.max(0, at + step));
      setAt(next);
      scroller.current?.scrollTo({ top: Math.max(0, (next - 6) * ROW_PX) });
    } else if (row !== undefined && row.parts !== undefined && wanted === "") {
      const isToOpen = event.key === "ArrowRight" && !row.isOpen;
      const isToClose = event.key === "ArrowLeft" && row.isOpen;
      if (isToOpen || isToClose || event.key === "Enter") flip(row.path);
    }
  };
  return (
    <>
      <Search {...search} status={hits === undefined ? texts.parts(rows.length) : texts.hits(hits)} />
      <div
        ref={scroller}
        role="tree"
        aria-label={texts.tree}
        aria-activedescendant={shown.some(({ index }) => index === at) ? `${tree}-${at}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        className="pre !whitespace-pre font-mono text-[12.5px]"
      >
        <div style={{ height: above }} />
        {shown.map(({ index }) => {
          const row = rows[index];
          if (row === undefined) return null;
          const choose = (): void => {
            setAt(index);
            if (row.parts !== undefined && wanted === "") flip(row.path);
          };
          const id = `${tree}-${index}`;
          return <TreeLine key={row.path} id={id} row={row} isCurrent={index === at} choose={choose} />;
        })}
        <div style={{ height: below }} />
      </div>
    </>
  );
}

interface TreeLineProps {
  id: string;
  row: TreeRow;
  isCurrent: boolean;
  choose(): void;
}

function TreeLine({ id, row, isCurrent, choose }: TreeLineProps): ReactNode {
  const brackets = row.isList ? "[]" : "{}";
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys of all its lines
    <div
      id={id}
      role="treeitem"
      tabIndex={-1}
      aria-level={row.depth + 1}
      aria-expanded={row.parts === undefined ? undefined : row.isOpen}
      aria-selected={isCurrent}
      className="tree-line"
      style={{ height: ROW_PX, paddingLeft: row.depth * 16 }}
      onClick={choose}
    >
      <span aria-hidden className={`inline-block w-4 text-muted ${row.isOpen ? "rotate-90" : ""}`}>
        {row.parts !== undefined && row.parts > 0 ? "›" : ""}
      </span>
      {row.name !== undefined && <span className="text-code-key">{row.name}: </span>}
      {row.parts === undefined ? (
        <span className={typeof row.value === "string" ? "text-code-text" : "text-code-number"}>
          {JSON.stringify(row.value)}
        </span>
      ) : (
        <span className="text-muted">
          {brackets[0]} {row.parts} {brackets[1]}
        </span>
      )}
    </div>
  );
}
