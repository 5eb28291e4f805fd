import {
  type ApprovalAck,
  type ConnectionState,
  type StartTurn,
  type Throughline,
  type TurnListener,
  TurnStore,
} from "@throughline/client";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

/** Callbacks for events and errors. */
export interface StreamingOptions extends TurnListener {
  /** The turn cannot be started or followed any further. */
  onError?(error: unknown): void;
}

/** A turn with its tool calls, live. */
export interface StreamingToolCalls {
  /** The blocks, for `useBlock` and the other hooks. Each turn has its own store. */
  store: TurnStore;
  /** The latest turn. */
  turnId: string | undefined;
  /** True while the turn streams. */
  isStreaming: boolean;
  /** State of the connection; `undefined` while there is none. */
  connection: ConnectionState | undefined;
  /** Starts a turn. */
  send(turn: StartTurn): Promise<void>;
  /** Stops the turn. Finished parts stay. */
  stop(): Promise<void>;
  /** Answers one approval, or `all` open ones. */
  decide(approvalId: string, decision: "approve" | "deny", reason?: string): Promise<ApprovalAck | undefined>;
}

/**
 * Starts turns and shows text and tool calls as they stream.
 *
 * For a chat with one turn at a time. When the component unmounts, it stops following; the turn itself continues.
 */
export function useStreamingToolCalls(
  client: Throughline,
  options: StreamingOptions = {},
): StreamingToolCalls {
  const [store, setStore] = useState(() => new TurnStore());
  const [turnId, setTurnId] = useState<string>();
  const [isStreaming, setIsStreaming] = useState(false);
  const [connection, setConnection] = useState<ConnectionState>();
  const listener = useRef(options);
  useEffect(() => {
    listener.current = options;
  });
  const leaving = useRef<AbortController>(undefined);
  useEffect(() => () => leaving.current?.abort(), []);

  const send = useCallback(
    async (turn: StartTurn): Promise<void> => {
      leaving.current?.abort();
      const leave = new AbortController();
      leaving.current = leave;
      const { signal } = leave;
      const store = new TurnStore();
      store.listen({
        onText: (delta, block) => listener.current.onText?.(delta, block),
        onToolCall: (call, block) => listener.current.onToolCall?.(call, block),
        onAudio: (chunk, block) => listener.current.onAudio?.(chunk, block),
      });
      setStore(store);
      setIsStreaming(true);
      try {
        const started = await client.start(turn, { signal, onConnection: setConnection });
        setTurnId(started.turn_id);
        await store.follow(started.events);
      } catch (error) {
        if (!signal.aborted) listener.current.onError?.(error);
      } finally {
        if (leaving.current === leave) {
          setIsStreaming(false);
          setConnection(undefined);
        }
      }
    },
    [client],
  );

  const stop = useCallback(async (): Promise<void> => {
    if (turnId !== undefined)
      await client.call("POST /v1/turns/{turn_id}/cancel", { path: { turn_id: turnId } });
  }, [client, turnId]);

  const decide = useCallback(
    async (approvalId: string, decision: "approve" | "deny", reason?: string) =>
      turnId === undefined
        ? undefined
        : await client.call("POST /v1/turns/{turn_id}/approvals/{approval_id}", {
            path: { turn_id: turnId, approval_id: approvalId },
            body: { decision, ...(reason === undefined ? {} : { reason }) },
          }),
    [client, turnId],
  );

  return useMemo(
    () => ({ store, turnId, isStreaming, connection, send, stop, decide }),
    [store, turnId, isStreaming, connection, send, stop, decide],
  );
}
