// Differences between the arguments of two calls. Framework-free.

/** A value, or its absence. */
interface Side {
  readonly value: unknown;
}

export interface Change {
  readonly kind: "added" | "changed" | "removed";
  /** `event.title`. */
  readonly path: string;
  readonly before: Side | undefined;
  readonly now: Side | undefined;
}

/** Compares objects recursively, other values as a whole. In the order of `now`, then removed members. */
export function changesOf(before: unknown, now: unknown, path = ""): Change[] {
  const [old, fresh] = [membersOf(before), membersOf(now)];
  if (old === undefined || fresh === undefined) {
    const isSame = JSON.stringify(before) === JSON.stringify(now);
    return isSame ? [] : [{ kind: "changed", path, before: { value: before }, now: { value: now } }];
  }
  return [...new Set([...Object.keys(fresh), ...Object.keys(old)])].flatMap((name) => {
    const at = path === "" ? name : `${path}.${name}`;
    const sides = { path: at, before: sideOf(old, name), now: sideOf(fresh, name) };
    if (sides.before === undefined) return [{ kind: "added" as const, ...sides }];
    if (sides.now === undefined) return [{ kind: "removed" as const, ...sides }];
    return changesOf(sides.before.value, sides.now.value, at);
  });
}

function sideOf(members: Readonly<Record<string, unknown>>, name: string): Side | undefined {
  return Object.hasOwn(members, name) ? { value: members[name] } : undefined;
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}
