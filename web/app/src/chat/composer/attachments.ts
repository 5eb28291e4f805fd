// Attachments of the next message: read or uploaded as soon as they are added. Framework-free.

import type { Throughline } from "@throughline/client";
import { Store } from "../../store.ts";
import type { DraftPart } from "../model/entry.ts";
import { fileIn } from "../model/file-text.ts";

/** Maximum number of files per message. */
export const FILES_MAX = 20;
/** Text of all files of a message, in bytes: the server accepts messages of 1 MiB, including the typed text. */
export const FILES_TEXT_BYTES_MAX = 900_000;

export interface Attachment {
  key: number;
  name: string;
  bytes: number;
  /** Object URL of a picture. */
  url?: string | undefined;
  /** Part of the message; `undefined`: still loading. */
  part?: DraftPart | undefined;
}

/** Reason why a file was not attached. */
export type Refusal =
  | "binary"
  | "empty"
  | "too_long"
  | "together"
  | "too_many"
  | "no_text"
  /** Error of the server or the connection. */
  | { error: unknown };

export interface Refused {
  key: number;
  name: string;
  bytes: number;
  why: Refusal;
}

/** Thrown when a file cannot be attached. */
export class FileRefused extends Error {
  readonly why: Refusal;

  constructor(why: Refusal) {
    super(typeof why === "string" ? why : "failed");
    this.why = why;
  }
}

interface State {
  list: readonly Attachment[];
  refused: readonly Refused[];
}

/** Attachments of the next message, and refused files. */
export class Attachments extends Store<State> {
  #keys = 0;
  readonly #client: Throughline;
  readonly #reading = new Map<number, AbortController>();

  constructor(client: Throughline) {
    super({ list: [], refused: [] });
    this.#client = client;
  }

  /** Attaches these files, as far as possible. */
  readonly add = async (files: Iterable<File>): Promise<void> => {
    this.dismiss();
    await Promise.all([...files].map((file) => this.#add(file)));
  };

  readonly remove = (key: number): void => {
    this.#reading.get(key)?.abort();
    const url = this.state.list.find((one) => one.key === key)?.url;
    if (url !== undefined) URL.revokeObjectURL(url);
    this.update({ list: this.state.list.filter((one) => one.key !== key) });
  };

  /** Clears the list of refused files. */
  readonly dismiss = (): void => {
    if (this.state.refused.length > 0) this.update({ refused: [] });
  };

  /** Takes all loaded attachments. Their pictures stay visible. */
  take(): readonly Attachment[] {
    const taken = this.state.list.filter(({ part }) => part !== undefined);
    this.update({ list: [], refused: [] });
    return taken;
  }

  /** Restores taken attachments that were not sent. */
  readonly putBack = (taken: readonly Attachment[]): void =>
    this.update({ list: [...taken, ...this.state.list] });

  /** Restores the files of a retracted message. */
  readonly restore = (parts: readonly DraftPart[]): void => {
    const restored = parts.flatMap((part): Attachment[] => {
      if (part.type === "image")
        return [{ key: this.#key(), name: part.name, bytes: 0, url: part.url, part }];
      const file = fileIn(part.text);
      if (file === undefined) return [];
      return [{ key: this.#key(), name: file.name, bytes: bytesOf(file.text), part }];
    });
    if (restored.length > 0) this.putBack(restored);
  };

  async #add(file: File): Promise<void> {
    const key = this.#key();
    const name = file.name || (file.type.startsWith("image/") ? "image" : "file");
    const refuse = (why: Refusal): void => {
      this.update({ refused: [...this.state.refused, { key, name, bytes: file.size, why }] });
    };
    if (this.state.list.length >= FILES_MAX) return refuse("too_many");
    const leave = new AbortController();
    this.#reading.set(key, leave);
    const isDrawn = /^image\/(?!svg)/.test(file.type);
    const url = isDrawn ? URL.createObjectURL(file) : undefined;
    this.update({ list: [...this.state.list, { key, name, bytes: file.size, url }] });
    try {
      const { read } = await import("./files/read.ts");
      const found = await read(file, name, this.#client, leave.signal);
      if (leave.signal.aborted) return;
      const image = found.type === "image";
      const part: DraftPart = image ? { ...found, url: url ?? "", name } : found;
      const textBytes = image ? 0 : bytesOf(found.text);
      if (this.#textBytes() + textBytes > FILES_TEXT_BYTES_MAX) throw new FileRefused("together");
      this.update({ list: this.state.list.map((one) => (one.key === key ? { ...one, part } : one)) });
    } catch (error) {
      if (leave.signal.aborted) return;
      this.remove(key);
      refuse(error instanceof FileRefused ? error.why : { error });
    } finally {
      this.#reading.delete(key);
    }
  }

  #textBytes(): number {
    const texts = this.state.list.map(({ part }) => (part?.type === "text" ? bytesOf(part.text) : 0));
    return texts.reduce((sum, bytes) => sum + bytes, 0);
  }

  #key(): number {
    this.#keys += 1;
    return this.#keys;
  }
}

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
