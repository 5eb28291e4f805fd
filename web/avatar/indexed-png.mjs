// A PNG encoder with 256 colors, for pictures in the repository.

import { crc32, deflateSync } from "node:zlib";

const COLORS = 256;

/** Encodes RGBA pixels of a canvas, four bytes each. */
export function indexedPng(width, height, rgba) {
  const palette = paletteOf(rgba);
  const nearest = new Map();
  const rows = Buffer.alloc(height * (width + 1));
  for (let at = 0; at < width * height; at += 1) {
    const [red, green, blue] = rgba.subarray(at * 4, at * 4 + 3);
    const key = (red << 16) | (green << 8) | blue;
    if (!nearest.has(key)) nearest.set(key, closest(palette, red, green, blue));
    rows[at + 1 + Math.floor(at / width)] = nearest.get(key);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("PLTE", Buffer.from(palette.flat())),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

/** Share of a picture above which a color, such as a background, is kept exactly, although a similar one exists. */
const LARGE = 1 / 500;

/** The colors of large surfaces, then the most frequent ones among those that differ visibly. */
function paletteOf(rgba) {
  const exact = new Map();
  const boxes = new Map();
  for (let at = 0; at < rgba.length; at += 4) {
    const [red, green, blue] = rgba.subarray(at, at + 3);
    const color = (red << 16) | (green << 8) | blue;
    exact.set(color, (exact.get(color) ?? 0) + 1);
  }
  const large = [...exact].filter(([, count]) => count > (rgba.length / 4) * LARGE);
  for (const [color, count] of exact) {
    const key = color & 0xf0f0f0;
    const box = boxes.get(key) ?? { count: 0, most: 0, color };
    box.count += count;
    if (count > box.most) Object.assign(box, { most: count, color });
    boxes.set(key, box);
  }
  const usual = [...boxes.values()].sort((a, b) => b.count - a.count).map(({ color }) => color);
  const kept = new Set([...large.sort((a, b) => b[1] - a[1]).map(([color]) => color), ...usual]);
  return [...kept].slice(0, COLORS).map((color) => [color >> 16, (color >> 8) & 255, color & 255]);
}

function closest(palette, red, green, blue) {
  let [best, least] = [0, Number.POSITIVE_INFINITY];
  for (const [at, [r, g, b]] of palette.entries()) {
    const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
    if (distance < least) [best, least] = [at, distance];
  }
  return best;
}

function chunk(name, data) {
  const named = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
