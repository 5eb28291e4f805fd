// The user's saved prompts on the server. Framework-free.

import type { SavedPrompt, Throughline } from "@throughline/client";
import { folded } from "@throughline/json";
import { Store } from "../../store.ts";

export interface LibraryState {
  /** The prompts; `undefined`: not loaded yet. */
  prompts: readonly SavedPrompt[] | undefined;
  /** Error of the last load. */
  failure: unknown;
}

export class PromptLibrary extends Store<LibraryState> {
  #loading: Promise<void> | undefined;
  readonly #client: Throughline;

  constructor(client: Throughline) {
    super({ prompts: undefined, failure: undefined });
    this.#client = client;
  }

  /** Loads the prompts, one request at a time. Known prompts stay visible. */
  readonly load = (): Promise<void> => {
    this.#loading ??= this.#client
      .call("GET /v1/saved-prompts")
      .then(
        ({ items }) => this.update({ prompts: items, failure: undefined }),
        (failure: unknown) => this.update({ failure }),
      )
      .finally(() => {
        this.#loading = undefined;
      });
    return this.#loading;
  };

  /** Saves a new prompt, or replaces `old`. Throws what the server refuses. */
  async save(name: string, text: string, old?: SavedPrompt): Promise<void> {
    const isRenamed = old !== undefined && old.name !== name;
    const version = old === undefined || isRenamed ? 0 : old.version;
    const saved = await this.#client.call("PUT /v1/saved-prompts/{name}", {
      path: { name },
      body: { text, version },
    });
    // The new prompt is created before the old one is deleted.
    if (isRenamed) await this.#delete(old.name);
    const others = (this.state.prompts ?? []).filter((one) => one.name !== name && one.name !== old?.name);
    this.update({ prompts: sorted([...others, saved]) });
  }

  async remove(name: string): Promise<void> {
    await this.#delete(name);
    this.update({ prompts: this.state.prompts?.filter((one) => one.name !== name) });
  }

  async #delete(name: string): Promise<void> {
    await this.#client.call("DELETE /v1/saved-prompts/{name}", { path: { name } });
  }
}

const libraries = new WeakMap<Throughline, PromptLibrary>();

/** Library of the signed-in user. */
export function libraryOf(client: Throughline): PromptLibrary {
  const library = libraries.get(client) ?? new PromptLibrary(client);
  libraries.set(client, library);
  return library;
}

function sorted(prompts: readonly SavedPrompt[]): SavedPrompt[] {
  return [...prompts].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Prompts with the search in their name, then those with it in their text. */
export function foundIn(prompts: readonly SavedPrompt[], search: string): SavedPrompt[] {
  const wanted = folded(search.trim());
  const named = prompts.filter(({ name }) => folded(name).includes(wanted));
  const others = prompts.filter((one) => !named.includes(one) && folded(one.text).includes(wanted));
  return [...named, ...others];
}

/** Prompts that match `/text` in the composer, ignoring spaces in names. */
export function typedIn(prompts: readonly SavedPrompt[], text: string): SavedPrompt[] {
  const bare = (text: string): string => folded(text).replace(/\s+/g, "");
  const typed = bare(text.slice(1));
  return prompts.filter(({ name }) => bare(name).includes(typed));
}
