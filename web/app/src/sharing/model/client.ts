// A client for a shared link without a key: it reads the shared conversation, and nothing else. Framework-free.

import { type CallArguments, type Operation, type OperationResponse, Throughline } from "@throughline/client";

/** Id and secret of a shared link. */
export interface SharedLink {
  id: string;
  secret: string;
}

/** The link in an address, `/s/ID#SECRET`; `undefined`: incomplete. */
export function linkIn(path: string, hash: string): SharedLink | undefined {
  const id = /^\/s\/([^/]+)$/.exec(path)?.[1];
  const secret = hash.replace(/^#/, "");
  return id === undefined || secret === "" ? undefined : { id, secret };
}

/** A client that reads files of messages through the link. */
export class SharedClient extends Throughline {
  readonly #link: SharedLink;

  constructor(link: SharedLink, baseUrl = "") {
    super({ baseUrl });
    this.#link = link;
  }

  override async call<O extends Operation>(
    operation: O,
    ...[options]: CallArguments<O>
  ): Promise<OperationResponse<O>> {
    const { path, signal } = (options ?? {}) as { path?: { file_id?: string }; signal?: AbortSignal };
    if (operation === "GET /v1/files/{file_id}/content" && path?.file_id !== undefined) {
      const body = { ...this.#link, file_id: path.file_id };
      // Both respond with the content of the file.
      return (await super.call("POST /v1/shared/file", { body, signal })) as OperationResponse<O>;
    }
    return await super.call(operation, ...([options] as CallArguments<O>));
  }
}
