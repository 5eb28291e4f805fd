import { ArrowDown, ArrowUp, X } from "lucide-react";
import { type ReactNode, useLayoutEffect, useRef } from "react";
import { IconButton } from "../ui/icon-button.tsx";
import { useAgentWords } from "./words.ts";

interface OrderedProps<T> {
  items: readonly T[];
  put(items: readonly T[]): void;
  /** Label of the item with this number, from 1. */
  label(number: number): string;
  /** True if this item decides the example. */
  isMatched?(at: number): boolean;
  head(item: T, at: number): ReactNode;
  body(item: T, at: number): ReactNode;
}

/** Rules in order, moved and removed by pointer or keyboard. */
export function Ordered<T extends { key: number }>(props: OrderedProps<T>) {
  const { items, put, label, isMatched, head, body } = props;
  const words = useAgentWords();
  const list = useRef<HTMLOListElement>(null);
  // A moved button loses the focus: it gets it back, or the other button does at an end of the list.
  const moved = useRef<readonly [number, string]>(undefined);
  useLayoutEffect(() => {
    const [key, way] = moved.current ?? [];
    moved.current = undefined;
    const buttons = [
      ...(list.current?.querySelectorAll<HTMLButtonElement>(`[data-rule="${key}"] [data-way]`) ?? []),
    ].filter((button) => !button.disabled);
    (buttons.find((button) => button.dataset.way === way) ?? buttons[0])?.focus();
  });
  const move = (at: number, by: 1 | -1): void => {
    const item = items[at];
    if (item === undefined) return;
    moved.current = [item.key, String(by)];
    put(items.toSpliced(at, 1).toSpliced(at + by, 0, item));
  };
  return (
    <ol ref={list} className="grid gap-3">
      {items.map((item, at) => (
        <li
          key={item.key}
          data-rule={item.key}
          data-decides={isMatched?.(at) || undefined}
          aria-label={label(at + 1)}
          className="rule"
        >
          <div className="flex flex-wrap items-center gap-2">
            <strong className="text-[13px] tabular-nums">{at + 1}</strong>
            {head(item, at)}
            <span className="ml-auto flex">
              <IconButton
                label={words.up(label(at + 1))}
                data-way="-1"
                disabled={at === 0}
                onClick={() => move(at, -1)}
              >
                <ArrowUp aria-hidden size={15} />
              </IconButton>
              <IconButton
                label={words.down(label(at + 1))}
                data-way="1"
                disabled={at === items.length - 1}
                onClick={() => move(at, 1)}
              >
                <ArrowDown aria-hidden size={15} />
              </IconButton>
              <IconButton label={words.removeOf(label(at + 1))} onClick={() => put(items.toSpliced(at, 1))}>
                <X aria-hidden size={15} />
              </IconButton>
            </span>
          </div>
          {body(item, at)}
        </li>
      ))}
    </ol>
  );
}
