// A ZIP archive of uncompressed texts: a few dozen lines instead of a package. Framework-free.

/** More entries need ZIP64, which not every program reads. */
export const ZIP_ENTRIES_MAX = 65_535;

const LOCAL = 0x04034b50;
const ENTRY = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
/** Flag for UTF-8 names. */
const UTF8 = 0x0800;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

/** CRC-32 of ZIP. */
export function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (TABLE[(value ^ byte) & 0xff] ?? 0) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

/** Collects files into an archive. Apart from the result, only the directory is kept in memory. */
export class Zip {
  readonly #parts: Blob[] = [];
  readonly #directory: Uint8Array<ArrayBuffer>[] = [];
  #offset = 0;

  get entries(): number {
    return this.#directory.length;
  }

  add(name: string, text: string): void {
    const [path, content] = [new TextEncoder().encode(name), new TextEncoder().encode(text)];
    // Version, flags, no compression, no time of day, 1 January 1980.
    const common = [u16(VERSION), u16(UTF8), u16(0), u16(0), u16(0x21), u32(crc32(content))];
    const sizes = [u32(content.length), u32(content.length), u16(path.length), u16(0)];
    const head = joined([u32(LOCAL), ...common, ...sizes, path]);
    const attributes = [u16(0), u16(0), u16(0), u32(0), u32(this.#offset)];
    this.#directory.push(joined([u32(ENTRY), u16(VERSION), ...common, ...sizes, ...attributes, path]));
    this.#parts.push(new Blob([head, content]));
    this.#offset += head.length + content.length;
  }

  file(): Blob {
    const size = this.#directory.reduce((sum, { length }) => sum + length, 0);
    const count = u16(this.entries);
    const end = joined([u32(END), u16(0), u16(0), count, count, u32(size), u32(this.#offset), u16(0)]);
    return new Blob([...this.#parts, ...this.#directory, end], { type: "application/zip" });
  }
}

function u16(value: number): Uint8Array {
  return Uint8Array.of(value & 0xff, (value >>> 8) & 0xff);
}

function u32(value: number): Uint8Array {
  return joined([u16(value & 0xffff), u16(value >>> 16)]);
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
