/**
 * An object without its absent fields. The log leaves them out, and so does the fold: `undefined` and `null` mean absent. All fields
 * have to be named, so that a new field of the type is not forgotten.
 */
export function defined<T extends object>(fields: { [K in keyof T]-?: T[K] | undefined | null }): T {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  // Required fields are present: their types allow `undefined` only for optional ones.
  return Object.fromEntries(entries) as T;
}

/** Sets or deletes a field. */
export function assign<T extends object, K extends keyof T>(
  target: T,
  name: K,
  value: T[K] | undefined | null,
): void {
  if (value === undefined || value === null) delete target[name];
  else target[name] = value;
}
