// Opens the dialog of models, which is loaded on first use. Framework-free.

const door = new EventTarget();

export const openModels = (): void => void door.dispatchEvent(new Event("open"));

export function onOpenModels(listener: () => void): () => void {
  door.addEventListener("open", listener);
  return () => door.removeEventListener("open", listener);
}
