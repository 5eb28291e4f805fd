import type { ComponentProps } from "react";

/** A button that shows a picture alone: what it does is its name, and shown to whoever points at it. */
export function IconButton({
  label,
  ...button
}: { label: string } & Omit<ComponentProps<"button">, "className">) {
  return <button type="button" {...button} className="icon-button" aria-label={label} title={label} />;
}
