// The door of the model picker. What is behind it is fetched when it is first opened. Framework-free.

const door = new EventTarget();

export const openPicker = (): void => void door.dispatchEvent(new Event("open"));

export function onOpenPicker(listener: () => void): () => void {
  door.addEventListener("open", listener);
  return () => door.removeEventListener("open", listener);
}
