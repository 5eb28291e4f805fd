// Registers the service worker of this page, and handles its messages. Framework-free.

import type { Throughline } from "@throughline/client";
import { denialIn, deny } from "./denial.ts";

/** Registers the service worker, except during development. */
export function registerWorker(): void {
  if (!import.meta.env.PROD) return;
  // Without it the page works, but not offline.
  void navigator.serviceWorker?.register("/sw.js", { scope: "/" })?.catch(() => undefined);
}

/** Handles clicks on notifications. Returns a function that ends that. */
export function handleWorkerMessages(client: Throughline, open: (url: string) => void): () => void {
  const worker = navigator.serviceWorker;
  if (worker === undefined) return () => undefined;
  const onMessage = ({ data, ports }: MessageEvent): void => {
    if (typeof data !== "object" || data === null) return;
    // Only a path of this page, never another host.
    if (data.kind === "open" && typeof data.url === "string" && /^\/(?!\/)/.test(data.url)) open(data.url);
    const denial = data.kind === "deny" ? denialIn(data.denial) : undefined;
    if (denial === undefined) return;
    const answer = (text: "done" | "failed"): void => ports[0]?.postMessage(text);
    deny(client, denial).then(
      () => answer("done"),
      () => answer("failed"),
    );
  };
  worker.addEventListener("message", onMessage);
  worker.startMessages();
  return () => worker.removeEventListener("message", onMessage);
}
