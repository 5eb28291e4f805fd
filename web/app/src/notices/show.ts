// Notifications of this browser. The service worker shows them, because only it receives clicks on their buttons; without it the page
// shows them without buttons. Framework-free.

import type { Denial } from "./denial.ts";

export interface Notice {
  /** A new notification with the same tag replaces this one. */
  tag: string;
  title: string;
  body: string;
  /** Address that a click opens. */
  url: string;
  /** Approval that a button denies, with the label of the button. */
  denial?: { denial: Denial; label: string };
}

/** Notifications of one browser. */
export interface Notifier {
  show(notice: Notice): Promise<void>;
  /** Closes a notification, if it is still shown. */
  close(tag: string): Promise<void>;
}

const ICON = "/icon-192.png";

/** Whether the browser supports and permits notifications. */
export type Permission = "unsupported" | "default" | "granted" | "denied";

export function permission(): Permission {
  return typeof Notification === "undefined" || !globalThis.isSecureContext
    ? "unsupported"
    : Notification.permission;
}

/** Requests permission; browsers allow that only after a click. */
export async function askPermission(): Promise<Permission> {
  return permission() === "default" ? await Notification.requestPermission() : permission();
}

async function registration(): Promise<ServiceWorkerRegistration | undefined> {
  const found = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  return found?.active ? found : undefined;
}

/** `open`: navigates to the address of a clicked notification, if the page has shown it itself. */
export function notifierOf(open: (url: string) => void): Notifier {
  const shown = new Map<string, Notification>();
  /** One at a time: Chromium 148 loses a notification that is shown during `getNotifications`. */
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
        // The DOM types lack buttons, which only notifications of a worker have.
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
