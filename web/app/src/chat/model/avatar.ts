// The avatar of this page as a client of the server: `live2d.*` calls are offered to it, it acts at once, in mid-reply, and reports
// the result. What a reload only shows again moves nothing. Framework-free.

import {
  type CallBlock,
  type CallResult,
  newKey,
  type Throughline,
  type TurnListener,
} from "@throughline/client";

/** The loaded avatar: the puppet, or a custom model. */
export interface Stage {
  readonly expressions: readonly string[];
  /** Groups of motions, each with its size. */
  readonly motions: Readonly<Record<string, number>>;
  expression(name: string): Cue;
  motion(group: string, index?: number): Cue;
}

/** Result of a gesture. */
export type Cue = { kind: "ok" } | { kind: "unknown"; known: readonly string[] };

const EXPRESSION = "live2d.expression";
const MOTION = "live2d.motion";

export class AvatarClient {
  readonly id: string;
  readonly #client: Throughline;
  readonly #stage: Stage;
  /** Calls that were acted on, so that a reconnect does not repeat them. */
  readonly #acted = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOn = false;
  /** Its tools were withdrawn: pending gestures are dropped. */
  #hasLeft = false;

  constructor(client: Throughline, stage: Stage, id: string = `page-${newKey()}`) {
    this.#client = client;
    this.#stage = stage;
    this.id = id;
  }

  /** Offers the avatar's tools until `stop`. */
  start(): void {
    if (this.#isOn) return;
    this.#isOn = true;
    this.#hasLeft = false;
    void this.#declare();
  }

  /** Withdraws the tools at once, also while the page closes: otherwise calls would wait for a client that left. */
  stop(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#hasLeft = true;
    clearTimeout(this.#timer);
    const { id } = this;
    void this.#client
      .call("PUT /v1/clients/{client_id}/tools", {
        path: { client_id: id },
        body: { tools: [] },
        keepalive: true,
      })
      .catch(() => {
        // An offer that is not renewed expires.
      });
  }

  /** Listener for one turn. */
  of(turnId: string): TurnListener {
    return {
      onToolCall: (call) => {
        if (!this.#hasLeft && call.status === "running" && call.client_id === this.id)
          void this.#act(turnId, call);
      },
    };
  }

  async #declare(): Promise<void> {
    clearTimeout(this.#timer);
    let again = 5_000;
    try {
      const { valid_ms } = await this.#client.call("PUT /v1/clients/{client_id}/tools", {
        path: { client_id: this.id },
        body: { tools: toolsOf(this.#stage) },
      });
      // Renewed twice per lifetime, so that one lost request does no harm.
      again = valid_ms / 2;
    } catch {
      // Without an avatar the conversation continues; its calls fail as not connected.
    }
    if (this.#isOn) this.#timer = setTimeout(() => void this.#declare(), again);
  }

  async #act(turnId: string, call: Readonly<CallBlock>): Promise<void> {
    // A second attempt is requested if the first one was not accepted.
    const attempt = `${call.tool_id} ${call.attempts}`;
    if (call.tool_id === undefined || this.#acted.has(attempt)) return;
    this.#acted.add(attempt);
    const cue = this.play(call);
    const body: CallResult =
      cue.kind === "ok"
        ? { status: "success", output: "applied", applied: true }
        : { status: "error", output: `unknown; there are: ${cue.known.join(", ")}`, applied: false };
    try {
      await this.#client.call("POST /v1/turns/{turn_id}/calls/{tool_id}/result", {
        path: { turn_id: turnId, tool_id: call.tool_id },
        body,
      });
    } catch {
      // Too late, or stopped in between: the gesture was made all the same.
    }
  }

  /** Makes the gesture of a call; also on demand, to see it again. */
  play(call: Readonly<CallBlock>): Cue {
    const value = call.ran_with ?? call.arguments;
    const given = typeof value === "object" && value !== null ? new Map(Object.entries(value)) : new Map();
    if (call.tool_name === EXPRESSION) return this.#stage.expression(String(given.get("name") ?? ""));
    if (call.tool_name !== MOTION) return { kind: "unknown", known: [EXPRESSION, MOTION] };
    const index = given.get("index");
    return this.#stage.motion(
      String(given.get("group") ?? ""),
      typeof index === "number" ? index : undefined,
    );
  }
}

function toolsOf({ expressions, motions }: Stage): ({ name: string } & Record<string, unknown>)[] {
  const object = (properties: Record<string, unknown>, required: string[]) => ({
    type: "object",
    properties,
    required,
    additionalProperties: false,
  });
  return [
    {
      name: EXPRESSION,
      title: "Avatar: expression",
      description: "Sets the facial expression of your avatar. Use it to show how you feel while you speak.",
      effect: "cosmetic",
      input_schema: object({ name: { type: "string", enum: expressions } }, ["name"]),
    },
    {
      name: MOTION,
      title: "Avatar: motion",
      description: "Plays a motion of your avatar, such as waving or nodding.",
      effect: "cosmetic",
      input_schema: object(
        { group: { type: "string", enum: Object.keys(motions) }, index: { type: "integer", minimum: 0 } },
        ["group"],
      ),
    },
  ];
}
