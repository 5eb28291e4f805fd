import type { ErrorDetail, ErrorResponse } from "./api.ts";

/** An error response of the server, or of a proxy in front of it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status. */
  readonly status: number;
  /** A stable code: `not_found`, `conversation_busy`, …; `http_502` if the response is not the server's. */
  readonly code: string;
  /** A remedy, in a sentence. */
  readonly remedy: string | undefined;
  /** The affected field, parameter or header. */
  readonly param: string | undefined;
  /** Seconds after which a retry may succeed. */
  readonly retryAfter: number | undefined;
  /** The complete error, with the fields that only this code has (`turn_id` of `conversation_busy`). */
  readonly content: ErrorDetail;

  constructor(status: number, content: ErrorDetail, retryAfter?: number) {
    super(content.message);
    this.status = status;
    this.content = content;
    this.code = content.code;
    this.remedy = content.remedy ?? undefined;
    this.param = content.param ?? undefined;
    this.retryAfter = retryAfter;
  }

  /** Parses the error in a response; reads its body. */
  static async of(response: Response): Promise<ApiError> {
    const text = await response.text().catch(() => "");
    const content = contentOf(text) ?? {
      code: `http_${response.status}`,
      type: response.status < 500 ? "invalid_request_error" : "server_error",
      message: `${response.status} ${response.statusText || text.slice(0, 200)}`.trim(),
    };
    return new ApiError(response.status, content, secondsOf(response.headers.get("retry-after")));
  }
}

function contentOf(text: string): ErrorDetail | undefined {
  try {
    const body: Partial<ErrorResponse> | null = JSON.parse(text);
    const content = body?.error;
    return typeof content?.code === "string" && typeof content.message === "string" ? content : undefined;
  } catch {
    return undefined;
  }
}

/** `Retry-After`: seconds, or (from proxies) a date. */
function secondsOf(header: string | null): number | undefined {
  if (header === null || header.trim() === "") return undefined;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const until = Date.parse(header);
  return Number.isNaN(until) ? undefined : Math.max(0, (until - Date.now()) / 1_000);
}
