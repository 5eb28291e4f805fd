// The door of the dialog of models. What is behind it is fetched when it is first opened. Framework-free.

const door = new EventTarget();

export const openModels = (): void => void door.dispatchEvent(new Event("open"));

export function onOpenModels(listener: () => void): () => void {
  door.addEventListener("open", listener);
  return () => door.removeEventListener("open", listener);
}
