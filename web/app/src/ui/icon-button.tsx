import type { ComponentProps } from "react";

/** A button with an icon only: its label is its accessible name and its tooltip. */
export function IconButton({
  label,
  ...button
}: { label: string } & Omit<ComponentProps<"button">, "className">) {
  return <button type="button" {...button} className="icon-button" aria-label={label} title={label} />;
}
