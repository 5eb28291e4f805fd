// The avatar of this page: loads it, attaches it to an element, and forwards events to it. Without React.

import type { AvatarStage } from "@throughline/avatar";
import type { CallBlock, Throughline, TurnListener } from "@throughline/client";
import { AvatarClient } from "../chat/model/avatar.ts";
import { Store } from "../store.ts";
import { live, motionAt, type WatchedConversation } from "./life.ts";

/** The avatar of a chat; its stage is `undefined` while it loads. */
export class Avatar extends Store<AvatarStage | undefined> {
  readonly #client: Throughline;
  #host: HTMLElement | undefined;
  #offers: AvatarClient | undefined;
  #isShown = false;

  constructor(client: Throughline) {
    super(undefined);
    this.#client = client;
  }

  /** Listener for the events of a turn; also of one that began before the avatar was loaded. */
  of(turnId: string): TurnListener {
    return {
      onToolCall: (call, block) => {
        this.#offers?.of(turnId).onToolCall?.(call, block);
        const motion = motionAt(call);
        if (motion !== undefined) this.state?.motion(motion);
      },
    };
  }

  /** Moves the mouth with the loudness of the voice, from 0 to 1. */
  speak(level: number): void {
    this.state?.speak(level);
  }

  /** Repeats the gesture of a call on this page only; nothing is sent to the server. */
  replay(call: Readonly<CallBlock>): void {
    this.#offers?.play(call);
  }

  /** Loads the avatar and connects it; returns a function that removes it. */
  enter(conversation: WatchedConversation): () => void {
    const leave = new AbortController();
    const { signal } = leave;
    void this.#load(conversation, signal).catch(() => {
      // Without an avatar the conversation continues; its calls fail as not connected.
    });
    return () => {
      leave.abort();
      this.state?.dispose();
      this.#offers = undefined;
      this.replace(undefined);
    };
  }

  /** Attaches the avatar to an element, and detaches it from the previous one. */
  show(parent: HTMLElement): () => void {
    const host = this.#host;
    if (host === undefined) return () => undefined;
    parent.append(host);
    this.#isShown = true;
    this.#look();
    return () => {
      if (host.parentElement !== parent) return;
      host.remove();
      this.#isShown = false;
      this.#look();
    };
  }

  async #load(conversation: WatchedConversation, signal: AbortSignal): Promise<void> {
    const { AvatarStage, Puppet } = await import("@throughline/avatar");
    if (signal.aborted) return;
    const host = document.createElement("div");
    host.className = "avatar-host";
    const puppet = new Puppet();
    const stage = new AvatarStage(puppet, await puppet.load({ kind: "puppet" }, host, signal));
    if (signal.aborted) return;
    this.#host = host;
    const offers = new AvatarClient(this.#client, stage);
    this.#offers = offers;
    offers.start();
    signal.addEventListener("abort", () => offers.stop());
    globalThis.addEventListener("pagehide", () => offers.stop(), { signal });
    // A page restored from the browser's cache starts again.
    globalThis.addEventListener("pageshow", () => offers.start(), { signal });
    document.addEventListener("visibilitychange", this.#look, { signal });
    let wasRunning = false;
    const onChange = (): void => {
      const isRunning = conversation.get().running !== undefined;
      if (isRunning === wasRunning) return;
      wasRunning = isRunning;
      if (isRunning) stage.turnBegan();
      else stage.turnEnded();
    };
    onChange();
    signal.addEventListener("abort", conversation.subscribe(onChange));
    signal.addEventListener(
      "abort",
      live(stage, conversation, () => host),
    );
    this.replace(stage);
    if (conversation.get().phase === "new") stage.motion("Wave", 0);
  }

  readonly #look = (): void => this.state?.seen(this.#isShown && document.visibilityState === "visible");
}
