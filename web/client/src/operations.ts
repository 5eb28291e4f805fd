// The operations of the API by method and path, derived from the generated description.

import type { paths } from "./api.ts";

type Methods = { get: "GET"; put: "PUT"; post: "POST"; delete: "DELETE"; patch: "PATCH" };
type Path = keyof paths & string;
type Described<P extends Path, M extends keyof Methods> = NonNullable<paths[P][M]>;
type IsNever<T> = [NonNullable<T>] extends [never] ? true : false;

/** Name of an operation, for example `"GET /v1/tools"`. WebSockets are not among them. */
export type Operation = {
  [P in Path]: {
    [M in keyof Methods]: IsNever<paths[P][M]> extends true ? never : `${Methods[M]} ${P}`;
  }[keyof Methods];
}[Path];

type DescriptionOf<O extends Operation> = O extends `${infer M} ${infer P extends Path}`
  ? Described<P, Lowercase<M> & keyof Methods>
  : never;

type Parameters<D> = D extends { parameters: infer P extends { path?: unknown; query?: unknown } }
  ? Pick<P, { [K in "path" | "query"]: IsNever<P[K]> extends true ? never : K }["path" | "query"]>
  : never;

type TextType = `text/${string}` | "application/jsonl";

type BodyOf<Content> = {
  [T in keyof Content]: T extends "application/json"
    ? Content[T]
    : T extends "multipart/form-data"
      ? FormData
      : T extends TextType
        ? string
        : Blob | Uint8Array<ArrayBuffer>;
}[keyof Content];

type Body<D> = D extends { requestBody: { content: infer Content } }
  ? { body: BodyOf<Content> }
  : D extends { requestBody?: infer B }
    ? IsNever<B> extends true
      ? unknown
      : { body?: BodyOf<NonNullable<B> extends { content: infer Content } ? Content : never> }
    : unknown;

/** Path, query and body of an operation. */
export type OperationInput<O extends Operation> = Parameters<DescriptionOf<O>> & Body<DescriptionOf<O>>;

/** Streams must be requested with `Accept`, so JSON comes first where both are offered. */
type ContentOf<R> = R extends { content: infer Content }
  ? "application/json" extends keyof Content
    ? Content["application/json"]
    : "text/event-stream" extends keyof Content
      ? ReadableStream<Uint8Array>
      : "*/*" extends keyof Content
        ? Blob
        : string
  : undefined;

type Success = 200 | 201 | 202 | 204;

/** Response of an operation that succeeds. */
export type OperationResponse<O extends Operation> =
  DescriptionOf<O> extends { responses: infer R } ? ContentOf<R[keyof R & Success]> : never;

/** Operations whose content can have any type. */
export type FileOperation = {
  [O in Operation]: Blob extends OperationResponse<O>
    ? unknown extends OperationResponse<O>
      ? never
      : O
    : never;
}[Operation];
