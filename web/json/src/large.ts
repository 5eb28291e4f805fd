// Large JSON as rows of a virtualized list. Framework-free.

import { folded } from "./fold.ts";
import type { Shape } from "./shape.ts";

/** Values with more parts are virtualized. */
export const SMALL_PARTS_MAX = 400;
/** Maximum number of hits in a tree. */
export const HITS_MAX = 10_000;

/** True if rendering all of it at once would be slow. Counts no more parts than necessary. */
export function isLarge(shape: Shape): boolean {
  if (shape.kind === "text") return false;
  let left = SMALL_PARTS_MAX;
  const stack: unknown[] = [shape.value];
  for (;;) {
    const value = stack.pop();
    if (value === undefined && stack.length === 0) return false;
    if (typeof value !== "object" || value === null) continue;
    for (const child of Object.values(value)) {
      left -= 1;
      if (left < 0) return true;
      if (typeof child === "object" && child !== null) stack.push(child);
    }
  }
}

/** A row of a tree. */
export interface TreeRow {
  /** JSON pointer from the root. */
  readonly path: string;
  readonly name: string | undefined;
  readonly depth: number;
  readonly value: unknown;
  /** Number of members of an object or an array. */
  readonly parts: number | undefined;
  readonly isList: boolean;
  readonly isOpen: boolean;
}

/** Open parts: by depth, inverted for those in `flipped`. */
export interface Openness {
  readonly depth: number;
  readonly flipped: ReadonlySet<string>;
}

/** The rows of a tree as far as it is open, in document order. */
export function rowsOfTree(root: unknown, { depth: openDepth, flipped }: Openness): TreeRow[] {
  const rows: TreeRow[] = [];
  const add = (name: string | undefined, value: unknown, path: string, depth: number): void => {
    const row = rowOf(name, value, path, depth, depth < openDepth !== flipped.has(path));
    rows.push(row);
    if (row.isOpen) eachPart(value, (part, inner) => add(part, inner, pathOf(path, part), depth + 1));
  };
  add(undefined, root, "", 0);
  return rows;
}

/** The rows with a text in their name or value, with their ancestors; and their number, up to {@link HITS_MAX}. */
export function rowsWith(root: unknown, text: string): { rows: TreeRow[]; hits: number } {
  const wanted = folded(text);
  const rows: TreeRow[] = [];
  let hits = 0;
  const has = (name: string | undefined, value: unknown): boolean =>
    (name !== undefined && folded(name).includes(wanted)) ||
    ((typeof value !== "object" || value === null) && folded(textOf(value)).includes(wanted));
  const add = (name: string | undefined, value: unknown, path: string, depth: number): boolean => {
    if (hits >= HITS_MAX) return false;
    const isHit = has(name, value);
    if (isHit) hits += 1;
    const at = rows.length;
    rows.push(rowOf(name, value, path, depth, true));
    let isKept = isHit;
    eachPart(value, (part, inner) => {
      if (add(part, inner, pathOf(path, part), depth + 1)) isKept = true;
    });
    if (!isKept) rows.length = at;
    return isKept;
  };
  add(undefined, root, "", 0);
  return { rows, hits };
}

/** The rows of a table with the text in a cell. */
export function rowsOfTableWith(
  rows: readonly Readonly<Record<string, unknown>>[],
  text: string,
): readonly Readonly<Record<string, unknown>>[] {
  const wanted = folded(text);
  if (wanted === "") return rows;
  return rows.filter((row) => Object.values(row).some((cell) => folded(textOf(cell)).includes(wanted)));
}

/** Text of a cell. */
export function textOf(value: unknown): string {
  return value === undefined ? "" : typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function rowOf(
  name: string | undefined,
  value: unknown,
  path: string,
  depth: number,
  isOpen: boolean,
): TreeRow {
  const isList = Array.isArray(value);
  if (typeof value !== "object" || value === null) {
    return { path, name, depth, value, parts: undefined, isList, isOpen: false };
  }
  const parts = isList ? value.length : Object.keys(value).length;
  return { path, name, depth, value, parts, isList, isOpen: isOpen && parts > 0 };
}

function eachPart(value: unknown, visit: (name: string, part: unknown) => void): void {
  if (typeof value !== "object" || value === null) return;
  for (const [name, part] of Object.entries(value)) visit(name, part);
}

function pathOf(path: string, name: string): string {
  return `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
