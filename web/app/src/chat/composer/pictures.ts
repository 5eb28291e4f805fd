// Pictures on their way into a message: sent to the server as soon as they are there. Framework-free. R: T12

import type { Throughline } from "@throughline/client";

export interface Picture {
  key: number;
  name: string;
  /** Shown from this browser's memory. */
  url: string;
  /** `undefined`: still on its way. */
  fileId: string | undefined;
}

/** Pictures that are to go with the next message. */
export class Pictures {
  #list: readonly Picture[] = [];
  #keys = 0;
  readonly #client: Throughline;
  readonly #listeners = new Set<() => void>();

  constructor(client: Throughline) {
    this.#client = client;
  }

  readonly get = (): readonly Picture[] => this.#list;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Takes the pictures among these files. Whoever calls is told which ones the server does not take. */
  async add(files: Iterable<File>): Promise<readonly string[]> {
    const added = [...files].filter((file) => file.type.startsWith("image/")).map((file) => this.#send(file));
    return (await Promise.all(added)).flatMap((refused) => refused ?? []);
  }

  readonly remove = (key: number): void => {
    this.#set(this.#list.filter((picture) => picture.key !== key));
  };

  /** All that has arrived, and nothing is left. Their pictures stay to be shown. */
  take(): readonly Picture[] {
    const taken = this.#list.filter((picture) => picture.fileId !== undefined);
    this.#set([]);
    return taken;
  }

  async #send(file: File): Promise<string | undefined> {
    this.#keys += 1;
    const key = this.#keys;
    const name = file.name || "image";
    this.#set([...this.#list, { key, name, url: URL.createObjectURL(file), fileId: undefined }]);
    try {
      const { id } = await this.#client.call("POST /v1/files", { body: file, query: { name } });
      this.#set(this.#list.map((one) => (one.key === key ? { ...one, fileId: id } : one)));
      return undefined;
    } catch {
      this.remove(key);
      return name;
    }
  }

  #set(list: readonly Picture[]): void {
    this.#list = list;
    for (const listener of this.#listeners) listener();
  }
}
