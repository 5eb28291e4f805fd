/**
 * An object without what it does not have. The log leaves out what is not there, and so does the fold: a field that is
 * `undefined` or `null` is no field. All fields have to be named, so that one that is added to the type is not forgotten.
 */
export function defined<T extends object>(fields: { [K in keyof T]-?: T[K] | undefined | null }): T {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  // Fields that must be there are there: their types allow `undefined` only where they may be absent.
  return Object.fromEntries(entries) as T;
}

/** Gives a field its value, or takes the field away. */
export function assign<T extends object, K extends keyof T>(
  target: T,
  name: K,
  value: T[K] | undefined | null,
): void {
  if (value === undefined || value === null) delete target[name];
  else target[name] = value;
}
