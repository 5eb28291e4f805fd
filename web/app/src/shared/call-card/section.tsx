import type { ReactNode } from "react";

/** A section of an open card, with its actions. */
export function Section({ title, side, children }: { title: string; side?: ReactNode; children: ReactNode }) {
  return (
    <section>
      <div className="label mb-1">
        <h3>{title}</h3>
        <div className="flex items-center gap-1">{side}</div>
      </div>
      {children}
    </section>
  );
}
