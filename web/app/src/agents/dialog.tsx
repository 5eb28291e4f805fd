import { type ReactNode, useEffect, useRef } from "react";

interface DialogProps {
  title: string;
  close(): void;
  children: ReactNode;
}

/** A modal dialog with a title. */
export function Dialog({ title, close, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => (before instanceof HTMLElement ? before.focus() : undefined);
  }, []);
  return (
    <dialog ref={dialog} aria-label={title} className="sheet" onClose={close}>
      <h2 className="mb-3 text-[15px] font-semibold">{title}</h2>
      {children}
    </dialog>
  );
}
