// Large JSON as rows of a list, of which a view draws those on the screen. Framework-free.

import { folded } from "./fold.ts";
import type { Shape } from "./shape.ts";

/** A value with more parts is drawn row by row. */
export const SMALL_PARTS_MAX = 400;
/** More hits than this are not looked for in a tree. */
export const HITS_MAX = 10_000;

/** Whether drawing all of it at once would be felt. Looks at no more parts than it has to. */
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
  /** Names from the root, as a JSON pointer: unique. */
  readonly path: string;
  readonly name: string | undefined;
  readonly depth: number;
  readonly value: unknown;
  /** Of an object or a list: how many parts it has. */
  readonly parts: number | undefined;
  readonly isList: boolean;
  readonly isOpen: boolean;
}

/** Which parts are open: those of `flipped` are the other way than their depth says. */
export interface Openness {
  readonly depth: number;
  readonly flipped: ReadonlySet<string>;
}

/** The rows of a tree as far as it is open, each part below what it is a part of. */
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

/** The rows that have a text in their name or value, with all that they are parts of; how many there are, up to {@link HITS_MAX}. */
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

/** The rows of a table with a text in a cell. */
export function rowsOfTableWith(
  rows: readonly Readonly<Record<string, unknown>>[],
  text: string,
): readonly Readonly<Record<string, unknown>>[] {
  const wanted = folded(text);
  if (wanted === "") return rows;
  return rows.filter((row) => Object.values(row).some((cell) => folded(textOf(cell)).includes(wanted)));
}

/** What is no object, as it stands in a cell. */
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
