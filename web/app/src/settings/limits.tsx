import type { UsageLimitsBody } from "@throughline/client";
import { useId } from "react";
import { LIMITS, numberIn, type TypedLimits } from "./model/limits.ts";
import { type PeopleWords, usePeopleWords } from "./people-words.ts";

/** Fields for the four limits of a user or a key. */
export function LimitFields({ typed, change }: { typed: TypedLimits; change(typed: TypedLimits): void }) {
  const words = usePeopleWords();
  const id = useId();
  return (
    <div className="grid grid-cols-2 gap-x-3 gap-y-2 min-[560px]:grid-cols-4">
      {LIMITS.map((limit) => {
        const isWrong = numberIn(typed[limit]) === undefined;
        return (
          <div key={limit}>
            <label htmlFor={id + limit} className="text-[12.5px]">
              {words.limit[limit]}
            </label>
            <input
              id={id + limit}
              inputMode="numeric"
              autoComplete="off"
              className="field tabular-nums"
              value={typed[limit]}
              aria-invalid={isWrong}
              aria-describedby={isWrong ? `${id}${limit}-wrong` : undefined}
              onChange={(event) => change({ ...typed, [limit]: event.currentTarget.value })}
            />
            {isWrong && (
              <p id={`${id}${limit}-wrong`} className="text-[12px] text-error">
                {words.wholeNumber}
              </p>
            )}
          </div>
        );
      })}
    </div>
  );
}

/** Limits as text, `50 turns a day, 5,000,000 tokens a month`; empty without limits. */
export function limitsText(limits: UsageLimitsBody, words: PeopleWords): string | undefined {
  const texts = LIMITS.flatMap((limit) => {
    const value = limits[limit];
    return value == null ? [] : words.ofLimit(limit, value);
  });
  return texts.length > 0 ? words.limited(texts.join(" · ")) : undefined;
}
