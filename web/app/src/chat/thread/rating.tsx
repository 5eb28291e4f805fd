import { ThumbsDown, ThumbsUp } from "lucide-react";
import { type FormEvent, useState, useSyncExternalStore } from "react";
import { useWords } from "../../i18n/use.ts";
import { useClient } from "../../session/context.tsx";
import { useChat, useEntry } from "../context.tsx";

type Value = "up" | "down";

/** Rating of an answer: thumbs, and an optional reason for a bad one. */
export function Rating() {
  const words = useWords();
  const client = useClient();
  const { conversation } = useChat();
  const { turnId } = useEntry();
  const { tree } = useSyncExternalStore(conversation.subscribe, conversation.get);
  const stored = tree.find((node) => node.id === turnId)?.rating?.value;
  const [given, setGiven] = useState<Value | null>();
  const [isAsking, setAsking] = useState(false);
  if (turnId === undefined) return null;
  const value = given === undefined ? stored : given;
  const rate = (next: Value | null, reason?: string): void => {
    const before = value ?? null;
    setGiven(next);
    const path = { turn_id: turnId };
    const sent =
      next === null
        ? client.call("DELETE /v1/turns/{turn_id}/rating", { path })
        : client.call("PUT /v1/turns/{turn_id}/rating", {
            path,
            body: { value: next, ...(reason && { reason }) },
          });
    // A rating that was not saved is not shown.
    void Promise.resolve(sent).catch(() => setGiven(before));
  };
  const press = (next: Value): void => {
    const isRemoved = value === next;
    rate(isRemoved ? null : next);
    setAsking(next === "down" && !isRemoved);
  };
  const thumb = (which: Value, label: string, Icon: typeof ThumbsUp) => (
    <button
      type="button"
      className="icon-button aria-pressed:text-accent"
      aria-pressed={value === which}
      aria-label={label}
      title={label}
      onClick={() => press(which)}
    >
      <Icon aria-hidden size={14} fill={value === which ? "currentColor" : "none"} />
    </button>
  );
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    rate("down", String(new FormData(event.currentTarget).get("reason")));
    setAsking(false);
  };
  return (
    <>
      {thumb("up", words.goodAnswer, ThumbsUp)}
      {thumb("down", words.badAnswer, ThumbsDown)}
      {isAsking && (
        <form onSubmit={submit} className="order-last mt-2 flex w-full gap-2">
          <input
            // biome-ignore lint/a11y/noAutofocus: it appears because they pressed the thumb
            autoFocus
            name="reason"
            dir="auto"
            maxLength={2000}
            autoComplete="off"
            aria-label={words.whatWasWrong}
            placeholder={words.whatWasWrong}
            className="field flex-1"
          />
          <button type="submit" className="button">
            {words.sendReason}
          </button>
        </form>
      )}
    </>
  );
}
