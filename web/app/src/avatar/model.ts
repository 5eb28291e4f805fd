// The avatar of this page: fetched when the page is there, put where it is shown, and told what happens. Without React.

import type { AvatarStage } from "@throughline/avatar";
import type { CallBlock, Throughline, TurnListener } from "@throughline/client";
import { AvatarClient } from "../chat/model/avatar.ts";
import { live, motionAt, type Talk } from "./life.ts";

export class Avatar {
  readonly #client: Throughline;
  readonly #listeners = new Set<() => void>();
  #stage: AvatarStage | undefined;
  #host: HTMLElement | undefined;
  #offers: AvatarClient | undefined;
  #isShown = false;

  constructor(client: Throughline) {
    this.#client = client;
  }

  /** `undefined` until it is there. */
  readonly get = (): AvatarStage | undefined => this.#stage;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Is told what a turn brings as it comes; also of one that began before the avatar was there. */
  of(turnId: string): TurnListener {
    return {
      onToolCall: (call, block) => {
        this.#offers?.of(turnId).onToolCall?.(call, block);
        const motion = motionAt(call);
        if (motion !== undefined) this.#stage?.motion(motion);
      },
    };
  }

  /** Moves its mouth: how loud the voice is now, from 0 to 1. */
  speak(level: number): void {
    this.#stage?.speak(level);
  }

  /** Makes the gesture of a call once more, here alone: nobody is told. */
  replay(call: Readonly<CallBlock>): void {
    this.#offers?.play(call);
  }

  /** Fetches it and has it take part; the answer takes it away. */
  enter(talk: Talk): () => void {
    const leave = new AbortController();
    const { signal } = leave;
    void this.#load(talk, signal).catch(() => {
      // Without an avatar the conversation goes on; its calls say that nobody was there.
    });
    return () => {
      leave.abort();
      this.#stage?.dispose();
      this.#stage = undefined;
      this.#offers = undefined;
      this.#tell();
    };
  }

  /** Puts it into a place of the page, out of the one where it was. */
  show(place: HTMLElement): () => void {
    const host = this.#host;
    if (host === undefined) return () => undefined;
    place.append(host);
    this.#isShown = true;
    this.#look();
    return () => {
      if (host.parentElement !== place) return;
      host.remove();
      this.#isShown = false;
      this.#look();
    };
  }

  async #load(talk: Talk, signal: AbortSignal): Promise<void> {
    const { AvatarStage, Puppet } = await import("@throughline/avatar");
    if (signal.aborted) return;
    const host = document.createElement("div");
    host.className = "avatar-host";
    const puppet = new Puppet();
    const stage = new AvatarStage(puppet, await puppet.load({ kind: "puppet" }, host, signal));
    if (signal.aborted) return;
    this.#host = host;
    this.#stage = stage;
    const offers = new AvatarClient(this.#client, stage);
    this.#offers = offers;
    offers.start();
    signal.addEventListener("abort", () => offers.stop());
    globalThis.addEventListener("pagehide", () => offers.stop(), { signal });
    // A page that was kept comes back as it was.
    globalThis.addEventListener("pageshow", () => offers.start(), { signal });
    document.addEventListener("visibilitychange", this.#look, { signal });
    let wasRunning = false;
    const hear = (): void => {
      const isRunning = talk.get().running !== undefined;
      if (isRunning === wasRunning) return;
      wasRunning = isRunning;
      if (isRunning) stage.turnBegan();
      else stage.turnEnded();
    };
    hear();
    signal.addEventListener("abort", talk.subscribe(hear));
    signal.addEventListener(
      "abort",
      live(stage, talk, () => host),
    );
    this.#tell();
    if (talk.get().phase === "new") stage.motion("Wave", 0);
  }

  readonly #look = (): void => this.#stage?.seen(this.#isShown && document.visibilityState === "visible");

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
