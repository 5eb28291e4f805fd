// Opens the model picker, which is loaded on first use. Framework-free.

const door = new EventTarget();

export const openPicker = (): void => void door.dispatchEvent(new Event("open"));

export function onOpenPicker(listener: () => void): () => void {
  door.addEventListener("open", listener);
  return () => door.removeEventListener("open", listener);
}
