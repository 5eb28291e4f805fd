/** From the pixels of a canvas, four bytes each. */
export function indexedPng(width: number, height: number, rgba: Uint8Array): Uint8Array;
