// Statistics of the rows.

/** Name of our own page, which must log no errors. */
export const OURS = "throughline";

/** Percentile of the values; NaN without values. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export function most(values: readonly number[]): number {
  return values.reduce((a, b) => Math.max(a, b), 0);
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

export function rounded(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}
