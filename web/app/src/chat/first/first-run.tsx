import type { ReactNode } from "react";
import { useWords } from "../../i18n/use.ts";
import { later } from "../../ui/later.tsx";
import type { Offer } from "../composer/offer.ts";

const Suggestions = later(() => import("./suggestions.tsx"));

/** A line of welcome above the composer; `children`: the avatar. */
export function Welcome({ children }: { children: ReactNode }) {
  const words = useWords();
  return (
    <header className="mx-auto flex w-full max-w-190 items-center justify-center gap-4 pb-4">
      <h2 className="text-center text-xl min-[720px]:text-2xl leading-tight font-semibold">
        {words.firstTitle}
      </h2>
      {children}
    </header>
  );
}

/** The suggestions below the composer. Their space is reserved before they load. */
export function Examples({ offer, ask }: { offer: Offer | undefined; ask(prompt: string): void }) {
  return <div className="first-examples">{offer && <Suggestions offer={offer} ask={ask} />}</div>;
}
