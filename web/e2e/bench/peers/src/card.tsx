import { memo } from "react";

interface CardProps {
  name: string;
  args: string;
  output: string | undefined;
}

/** A minimal card. */
export const Card = memo(({ name, args, output }: CardProps) => (
  <details className="card">
    <summary>
      {output === undefined ? "…" : "✓"} {name} <code>{args.slice(0, 60)}</code>
    </summary>
    <pre>{args}</pre>
    {output !== undefined && <pre>{output.slice(0, 2_000)}</pre>}
  </details>
));
