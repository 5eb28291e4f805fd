// The service worker of this page: registered when the page stands, and heard. Framework-free.

import type { Throughline } from "@throughline/client";
import { denialIn, deny } from "./denial.ts";

/** Registers it, if this is a page that was built and not one under development. */
export function registerWorker(): void {
  if (!import.meta.env.PROD) return;
  // Without it the page is the same, but for what it does without a server.
  void navigator.serviceWorker?.register("/sw.js", { scope: "/" })?.catch(() => undefined);
}

/** Does what was clicked on a notification. Gives the function that ends that. */
export function hearWorker(client: Throughline, open: (url: string) => void): () => void {
  const worker = navigator.serviceWorker;
  if (worker === undefined) return () => undefined;
  const heard = ({ data, ports }: MessageEvent): void => {
    if (typeof data !== "object" || data === null) return;
    // Only an address of this page: a path, and not of another host.
    if (data.kind === "open" && typeof data.url === "string" && /^\/(?!\/)/.test(data.url)) open(data.url);
    const denial = data.kind === "deny" ? denialIn(data.denial) : undefined;
    if (denial === undefined) return;
    const answer = (text: "done" | "failed"): void => ports[0]?.postMessage(text);
    deny(client, denial).then(
      () => answer("done"),
      () => answer("failed"),
    );
  };
  worker.addEventListener("message", heard);
  worker.startMessages();
  return () => worker.removeEventListener("message", heard);
}
