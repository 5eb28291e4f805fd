// Notifies of ended turns and open approvals while the page is hidden. Framework-free.

import type { CallBlock, Message, Throughline, TurnListener } from "@throughline/client";
import type { Words } from "../i18n/words.ts";
import { approvalToolName } from "../shared/call-card/tone.ts";
import type { Notice, Notifier } from "./show.ts";
import { linesOf } from "./text.ts";

/** Interval at which turns of other conversations are checked. */
const POLL_MS = 10_000;
/** Length of the beginning of an answer in a notification. */
const ANSWER_CHARS_MAX = 500;

/** A turn and its conversation. */
export interface Followed {
  turnId: string;
  conversationId: string | undefined;
  title: string;
}

export interface NoticesOptions {
  notifier: Notifier;
  words(): Words;
  /** The user wants notifications in this browser. */
  isWanted(): boolean;
  isHidden(): boolean;
  /** The user who began these turns is still signed in. */
  isSignedIn(): boolean;
  /** Called with the number of unseen notifications. */
  onUnseen(count: number): void;
}

export class Notices {
  readonly #client: Throughline;
  readonly #options: NoticesOptions;
  /** Turns of conversations that were left, which continue. */
  readonly #left = new Map<string, Followed>();
  /** Tags of notifications that are shown, as far as this page knows. */
  readonly #shown = new Set<string>();
  #unseen = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(client: Throughline, options: NoticesOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** Listener for a running turn. */
  of(turn: Followed): TurnListener {
    this.#left.delete(turn.turnId);
    const known = new Set<string>();
    return {
      onToolCall: (call) => {
        const id = call.approval?.approval_id;
        if (call.status === "awaiting_approval" && id !== undefined) {
          if (known.has(id)) return;
          known.add(id);
          this.#ask(turn, call);
        } else if (known.size > 0 && call.status !== "awaiting_approval" && id !== undefined) {
          void this.#close(tagOf(turn.turnId, id));
        }
      },
    };
  }

  end({ turnId, conversationId, title }: Followed, message: Message): void {
    const words = this.#options.words();
    const names = {
      completed: words.noticeDone,
      error: words.noticeFailed,
      length: words.noticeEnded,
      limit: words.noticeEnded,
      interrupted: words.noticeEnded,
    } as Readonly<Record<string, string>>;
    // Stopping is done by the user, who knows.
    const name = names[message.status ?? ""];
    if (name === undefined) return;
    this.#notify({
      tag: tagOf(turnId),
      title: name,
      body: linesOf(title, textOf(message)),
      url: urlOf(conversationId),
    });
  }

  /** The conversation of a running turn was left. */
  leave(turn: Followed): void {
    this.#left.set(turn.turnId, turn);
    this.#timer ??= setTimeout(this.#poll, POLL_MS);
  }

  /** The page became visible. */
  readonly seen = (): void => {
    if (this.#unseen > 0) this.#options.onUnseen(0);
    this.#unseen = 0;
    for (const tag of [...this.#shown]) void this.#close(tag);
  };

  #ask({ turnId, conversationId, title }: Followed, call: Readonly<CallBlock>): void {
    const { approval } = call;
    if (approval === undefined) return;
    const words = this.#options.words();
    const argumentsHash = approval.arguments_hash;
    const denial = {
      turnId,
      approvalId: approval.approval_id,
      ...(argumentsHash === undefined ? {} : { argumentsHash }),
    };
    this.#notify({
      tag: tagOf(turnId, approval.approval_id),
      title: words.noticeAsks,
      body: linesOf(title, approvalToolName(call, words), call.input_summary),
      url: `${urlOf(conversationId)}#question`,
      // An elicitation cannot be answered by a button.
      ...(approval.kind === "elicitation" ? {} : { denial: { denial, label: words.deny } }),
    });
  }

  #notify(notice: Notice): void {
    if (!this.#options.isHidden()) return;
    this.#unseen += 1;
    this.#options.onUnseen(this.#unseen);
    if (!this.#options.isWanted()) return;
    this.#shown.add(notice.tag);
    // If the system shows no notifications, the title of the tab remains.
    void this.#options.notifier.show(notice).catch(() => undefined);
  }

  async #close(tag: string): Promise<void> {
    if (!this.#shown.delete(tag)) return;
    await this.#options.notifier.close(tag).catch(() => undefined);
  }

  readonly #poll = (): void => {
    this.#timer = undefined;
    // No requests with an expired key.
    if (!this.#options.isSignedIn()) return this.#left.clear();
    void this.#lookAtLeft()
      .catch(() => undefined)
      .then(() => {
        if (this.#left.size > 0) this.#timer ??= setTimeout(this.#poll, POLL_MS);
      });
  };

  async #lookAtLeft(): Promise<void> {
    const { items: open } = await this.#client.call("GET /v1/turns");
    const running = new Set(open.map(({ turn_id }) => turn_id));
    for (const turn of [...this.#left.values()]) {
      const { turnId: turn_id, conversationId, title } = turn;
      if (!running.has(turn_id)) {
        this.#left.delete(turn_id);
        const { message } = await this.#client.call("GET /v1/turns/{turn_id}", { path: { turn_id } });
        this.end(turn, message);
        continue;
      }
      const words = this.#options.words();
      const query = { turn_id, status: "awaiting_approval" };
      const { items } = await this.#client.call("GET /v1/history/calls", { query });
      for (const { tool_id, tool_name, source } of items) {
        const tag = tagOf(turn_id, tool_id);
        if (this.#known.has(tag)) continue;
        this.#known.add(tag);
        this.#notify({
          tag,
          title: words.noticeAsks,
          body: linesOf(title, words.toolFrom(tool_name, source)),
          url: `${urlOf(conversationId)}#question`,
        });
      }
    }
  }

  /** Known approvals of turns that were left, to notify once. */
  readonly #known = new Set<string>();
}

function tagOf(turnId: string, question = ""): string {
  return `throughline/${turnId}/${question}`;
}

function urlOf(conversationId: string | undefined): string {
  return conversationId === undefined ? "/" : `/c/${encodeURIComponent(conversationId)}`;
}

/** Beginning of an answer. */
function textOf({ blocks }: Message): string {
  let text = "";
  for (const block of blocks) {
    if (block.kind === "text") text += `${block.text} `;
    if (text.length >= ANSWER_CHARS_MAX) break;
  }
  return text.slice(0, ANSWER_CHARS_MAX);
}
