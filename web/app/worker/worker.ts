// The service worker (`/sw.js`): the page without a server, and clicks on notifications. It caches only the page's own files: it never
// sees a key, and no response of `/v1` passes through it.

export type {};

declare const self: ServiceWorkerGlobalScope;

/** Set by the build: the hashed files that are cached at once, and a name for all of them together. */
declare const FILES: readonly string[];
declare const RELEASE: string;

const PREFIX = "throughline-";
const CACHE = PREFIX + RELEASE;
/** A tab may still show the page of another release, and load parts of it. */
const OLDER_RELEASES_MAX = 1;
const SHELL = "/";
/** Files of the shell without a hash in their names. */
const FIXED: ReadonlySet<string> = new Set([
  "/first-paint.js",
  "/icon.svg",
  "/icon-192.png",
  "/icon-512.png",
  "/icon-maskable-512.png",
  "/app.webmanifest",
]);
/** Paths of the page's views; the server alone answers all others. */
const VIEWS = /^\/(?:[cs]\/[^/]+|tester|agents|history(?:\/calls)?|stats|settings)?$/;
/** A page confirms a denial within this time, unless it is busy or closed. */
const ANSWER_MS_MAX = 5_000;

self.addEventListener("install", (event) => {
  // An open page stays as it is: its parts are in the cache of its own release.
  event.waitUntil(fill().then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => {
  event.waitUntil(tidy().then(() => self.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== self.location.origin) return;
  if (request.mode === "navigate") {
    if (VIEWS.test(pathname)) event.respondWith(fromServer(request, SHELL));
  } else if (pathname.startsWith("/assets/")) event.respondWith(fromCache(request));
  else if (FIXED.has(pathname)) event.respondWith(fromServer(request, pathname));
});

/** All or nothing: files of two releases do not fit together. */
async function fill(): Promise<void> {
  const shell = await fetch(SHELL, { cache: "reload", headers: { accept: "text/html" } });
  const html = await shell.clone().text();
  const scripts = [...html.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
  if (!shell.ok || scripts.length === 0 || !scripts.every((path) => FILES.includes(path)))
    throw new Error("the server has another release by now");
  const cache = await caches.open(CACHE);
  await cache.addAll([...FILES, ...[...FIXED].map((path) => new Request(path, { cache: "reload" }))]);
  await cache.put(SHELL, shell);
}

async function tidy(): Promise<void> {
  const names = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  // In the order of creation.
  for (const name of names.slice(0, -OLDER_RELEASES_MAX)) await caches.delete(name);
}

/** The server's page if it can be reached, never an older one. */
async function fromServer(request: Request, path: string): Promise<Response> {
  let response: Response | undefined;
  try {
    response = await fetch(request);
    if (response.status < 500) return response;
  } catch {
    // Offline, or the server is away.
  }
  const cache = await caches.open(CACHE);
  return (await cache.match(path, { ignoreVary: true })) ?? response ?? Response.error();
}

/** A file with a hash in its name. */
async function fromCache(request: Request): Promise<Response> {
  const found = await caches.match(request, { ignoreVary: true });
  if (found !== undefined) return found;
  const response = await fetch(request);
  if (response.ok) {
    const cache = await caches.open(CACHE);
    await cache.put(request, response.clone());
  }
  return response;
}

/** Data of a notification, as `src/notices/show.ts` writes it. */
interface NoticeData {
  url: string;
  denial?: unknown;
}

self.addEventListener("notificationclick", (event) => {
  const { notification, action } = event;
  notification.close();
  const { url, denial }: NoticeData = notification.data;
  event.waitUntil(action === "deny" ? deny(url, denial) : open(url));
});

/** Focuses the tab of the conversation, else any tab of the page, or opens a new one. */
async function open(url: string): Promise<void> {
  const page = await pageFor(url);
  if (page === undefined) return void (await self.clients.openWindow(url));
  page.postMessage({ kind: "open", url });
  // Not every click may focus a tab.
  await page.focus().catch(() => undefined);
}

/** Forwards a denial to a page, which has the key. Without one, the approval is shown. */
async function deny(url: string, denial: unknown): Promise<void> {
  const page = await pageFor(url);
  const isDone = page !== undefined && (await ask(page, { kind: "deny", denial }));
  if (!isDone) await open(url);
}

async function pageFor(url: string): Promise<WindowClient | undefined> {
  const all = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const pages = all.filter((client) => VIEWS.test(new URL(client.url).pathname));
  const { pathname } = new URL(url, self.location.origin);
  return pages.find((client) => new URL(client.url).pathname === pathname) ?? pages[0];
}

function ask(page: WindowClient, message: object): Promise<boolean> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    const timer = setTimeout(() => resolve(false), ANSWER_MS_MAX);
    port1.onmessage = ({ data }) => {
      clearTimeout(timer);
      resolve(data === "done");
    };
    page.postMessage(message, [port2]);
  });
}
