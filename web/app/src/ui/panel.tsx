import { type ReactNode, useId } from "react";

/** A section of a view, with its heading and actions. */
export function Panel({ title, badge, side, children }: PanelProps) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="panel">
      <div className="panel-head">
        <h2 id={id} className="text-[14px] font-semibold">
          {title}
        </h2>
        {badge}
        <div className="ml-auto flex flex-wrap items-center justify-end gap-1.5">{side}</div>
      </div>
      {children}
    </section>
  );
}

interface PanelProps {
  title: string;
  badge?: ReactNode;
  side?: ReactNode;
  children: ReactNode;
}
