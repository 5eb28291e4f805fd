// Notifications of this browser. The service worker shows them, since only it hears of a button on one; without it the page shows
// them, without a button. Framework-free.

import type { Denial } from "./denial.ts";

export interface Notice {
  /** Another one with the same tag takes its place. */
  tag: string;
  title: string;
  body: string;
  /** Where a click leads. */
  url: string;
  /** A question that can be denied there, and what the button is called. */
  denial?: { denial: Denial; label: string };
}

/** Notifications as one browser has them. */
export interface Notifier {
  show(notice: Notice): Promise<void>;
  /** Takes one back, if it is still there. */
  close(tag: string): Promise<void>;
}

const ICON = "/icon-192.png";

/** Whether this browser can show any, and may. */
export type Permission = "unsupported" | "default" | "granted" | "denied";

export function permission(): Permission {
  return typeof Notification === "undefined" || !globalThis.isSecureContext
    ? "unsupported"
    : Notification.permission;
}

/** Asks whoever sits there; only after a click does a browser let a page do so. */
export async function askPermission(): Promise<Permission> {
  return permission() === "default" ? await Notification.requestPermission() : permission();
}

async function registration(): Promise<ServiceWorkerRegistration | undefined> {
  const found = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  return found?.active ? found : undefined;
}

/** `open`: goes to the address of one that was clicked, where the page has shown it itself. */
export function notifierOf(open: (url: string) => void): Notifier {
  const shown = new Map<string, Notification>();
  /** One at a time: Chromium 148 loses a notification that is shown while somebody asks which there are. */
  let last: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    last = last.then(work, work);
    return last;
  };
  const notifier: Notifier = {
    async show({ tag, title, body, url, denial }) {
      if (permission() !== "granted") return;
      const worker = await registration();
      const options: NotificationOptions = { tag, body, icon: ICON, badge: ICON, dir: "auto" };
      if (worker !== undefined) {
        const actions = denial === undefined ? [] : [{ action: "deny", title: denial.label }];
        const data = { url, denial: denial?.denial };
        // The types of the DOM lack the buttons, which only a worker's notifications have.
        await worker.showNotification(title, { ...options, data, actions } as NotificationOptions);
        return;
      }
      const notification = new Notification(title, options);
      shown.set(tag, notification);
      notification.onclick = () => {
        notification.close();
        globalThis.focus();
        open(url);
      };
    },
    async close(tag) {
      shown.get(tag)?.close();
      shown.delete(tag);
      const worker = await registration();
      for (const one of (await worker?.getNotifications({ tag })) ?? []) one.close();
    },
  };
  return {
    show: (notice) => inTurn(() => notifier.show(notice)),
    close: (tag) => inTurn(() => notifier.close(tag)),
  };
}
