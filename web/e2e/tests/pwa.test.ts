// The page as an app: installation, offline use and notifications. With the page of the program: a service worker cannot load it from
// anywhere else.

import type { Page, Worker } from "playwright-core";
import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import { type BrowserOptions, type BrowserUser, withWholeBrowser } from "../browser.ts";
import { Gate } from "../gate.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

withWholeBrowser();
const fixture = ServerFixture.of(() => Server.start());

/** A title with right-to-left and invisible characters. */
const HOSTILE = "Tea\u202egnitem\u200b \u2066now";

async function withWorker(
  server = fixture.server,
  options: BrowserOptions = {},
): Promise<{ user: BrowserUser; worker: Worker }> {
  const user = await fixture.user({ worker: "allow", ...options }, server);
  await user.page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  const context = user.page.context();
  const [worker = await context.waitForEvent("serviceworker")] = context.serviceWorkers();
  return { user, worker };
}

const cached = (page: Page): Promise<string[]> =>
  page.evaluate(async () => {
    const found: string[] = [];
    for (const name of await caches.keys()) {
      for (const { url } of await (await caches.open(name)).keys()) found.push(new URL(url).pathname);
    }
    return found;
  });

/** Simulates a hidden tab: a headless browser hides none. */
async function hide(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    const state = isHidden ? "hidden" : "visible";
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

interface Shown {
  title: string;
  body: string;
  actions: string[];
  tag: string;
}

const notices = (page: Page): Promise<Shown[]> =>
  page.evaluate(async () => {
    const registration = await navigator.serviceWorker.ready;
    return (await registration.getNotifications()).map((one) => {
      const { actions = [] } = one as unknown as { actions?: { action: string }[] };
      return { title: one.title, body: one.body, tag: one.tag, actions: actions.map(({ action }) => action) };
    });
  });

/** Waits for this many notifications. Only then may they be queried: Chromium 148 loses one that is shown during a query. */
const haveShown = (page: Page, count: number) =>
  expect
    .poll(() => page.evaluate(() => (globalThis as { shownNotices?: number }).shownNotices ?? 0))
    .toBe(count);

/** A click on the first notification, or on a button of it. */
async function click(worker: Worker, action: string): Promise<void> {
  await worker.evaluate(async (action) => {
    const scope = globalThis as unknown as {
      registration: ServiceWorkerRegistration;
      NotificationEvent: new (type: string, init: object) => Event;
    };
    const [notification] = await scope.registration.getNotifications();
    globalThis.dispatchEvent(new scope.NotificationEvent("notificationclick", { notification, action }));
  }, action);
}

async function wantNotices({ page }: BrowserUser, server: Server): Promise<void> {
  await page.context().grantPermissions(["notifications"]);
  await page.addInitScript(() => {
    const counted = globalThis as { shownNotices?: number };
    const { prototype } = ServiceWorkerRegistration;
    const show = prototype.showNotification;
    prototype.showNotification = async function (...notification) {
      await show.apply(this, notification);
      counted.shownNotices = (counted.shownNotices ?? 0) + 1;
    };
  });
  await page.goto(`${server.url}/settings`);
  await page.getByLabel("Notify me in this browser").check();
  await page.goto(`${server.url}/`);
  await page.locator("textarea").first().waitFor();
}

const ask = (title: string) => ({
  call: { name: "demo_calendar", arguments: { title, when: "2026-12-01T08:00" } },
});

test("page is installable, and its worker caches only files of the page", async () => {
  const { user } = await withWorker();
  const { page } = user;
  const manifest = await page.evaluate(async () => {
    const link = document.querySelector<HTMLLinkElement>("link[rel=manifest]");
    const response = await fetch(link?.href ?? "");
    return { type: response.headers.get("content-type"), ...(await response.json()) };
  });
  expect(manifest).toMatchObject({
    type: "application/manifest+json",
    start_url: "/",
    scope: "/",
    display: "standalone",
  });
  for (const { src, sizes } of manifest.icons as { src: string; sizes: string }[]) {
    const size = await page.evaluate(async (src) => {
      const image = new Image();
      image.src = src;
      await image.decode();
      return `${image.naturalWidth}x${image.naturalHeight}`;
    }, src);
    if (sizes !== "any") expect(size, src).toBe(sizes);
  }
  const debug = await page.context().newCDPSession(page);
  const { errors } = await debug.send("Page.getAppManifest");
  expect(errors).toEqual([]);
  await user.send("What time is it?");
  await user.settled();
  const found = await cached(page);
  expect(found).toContain("/");
  const others = found.filter(
    (path) => !/^\/(assets\/[\w.-]+|first-paint\.js|icon[\w-]*\.(svg|png)|app\.webmanifest)?$/.test(path),
  );
  expect(others, "nothing but the page's own files").toEqual([]);
  const head = await page.evaluate(async () => {
    const { headers } = await fetch("/sw.js");
    return [headers.get("cache-control"), headers.get("content-type")];
  });
  expect(head).toEqual(["no-cache", "text/javascript; charset=utf-8"]);
});

test("page opens without a server, and continues once there is one", async () => {
  const server = await fixture.ownServer(Server.start());
  const { user } = await withWorker(server);
  const { page } = user;
  await server.kill();
  await page.goto(`${server.url}/history`);
  await page.getByText(en.unreachableRetrying).waitFor();
  await user.picture("offline-shell");
  expect(await user.violations()).toEqual([]);
  await server.start();
  await page.getByRole("heading", { name: en.history }).waitFor();
  // Paths other than views are answered by the server.
  await page.goto(`${server.url}/docs`);
  expect(await page.title()).not.toBe("Throughline");
});

test("part that was never opened is available offline from the worker", async () => {
  const server = await fixture.ownServer(Server.start());
  const { user } = await withWorker(server);
  const { page } = user;
  await expect.poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null)).toBe(true);
  await server.kill();
  await page.getByRole("link", { name: en.agents }).click();
  await page.getByRole("heading", { name: en.agents }).waitFor();
  expect(await page.locator(".part-failed").count()).toBe(0);
});

test("approval on a hidden page is notified with its exact text, and denied there", async () => {
  const gate = new Gate();
  const rules: Rule[] = [
    { times: 1, does: [gate.move, { say: "A moment." }, ask(HOSTILE)] },
    { does: [{ say: "Then not." }] },
  ];
  const server = await fixture.ownServer(Server.scripted(rules));
  const { user, worker } = await withWorker(server);
  const { page } = user;
  await wantNotices(user, server);
  await user.send(`Put in ${HOSTILE}`);
  await expect.poll(() => page.url()).toMatch(/\/c\//);
  await hide(page, true);
  gate.open();
  await haveShown(page, 1);
  await expect.poll(() => notices(page)).toHaveLength(1);
  const [notice] = await notices(page);
  expect(notice).toMatchObject({ title: en.noticeAsks, actions: ["deny"] });
  expect(notice?.body).toContain("Tea\\u202egnitem\\u200b \\u2066now");
  expect(notice?.body).not.toMatch(/[\u200b\u202a-\u202e\u2066-\u2069]/);
  await expect.poll(() => page.title()).toMatch(/^\(1\)/);
  await click(worker, "deny");
  await page.locator(".card[data-status=denied]").waitFor();
  await user.settled();
  await haveShown(page, 2);
  await expect.poll(async () => (await notices(page)).map(({ title }) => title)).toEqual([en.noticeDone]);
  await expect.poll(() => page.title()).toMatch(/^\(2\) /);
  await hide(page, false);
  await expect.poll(() => page.title()).not.toMatch(/^\(/);
  await expect.poll(() => notices(page)).toEqual([]);
});

test("click on a notification opens the approval, in any tab", async () => {
  const gate = new Gate();
  const rules: Rule[] = [{ times: 1, does: [gate.move, ask("Tea")] }, { does: [{ say: "It is in." }] }];
  const server = await fixture.ownServer(Server.scripted(rules));
  const { user, worker } = await withWorker(server);
  const { page } = user;
  await wantNotices(user, server);
  await user.send("Tea, please");
  await expect.poll(() => page.url()).toMatch(/\/c\//);
  const conversation = new URL(page.url()).pathname;
  await page.getByRole("link", { name: en.history }).click();
  await hide(page, true);
  gate.open();
  await haveShown(page, 1);
  await expect.poll(() => notices(page)).toHaveLength(1);
  await click(worker, "");
  await expect.poll(() => new URL(page.url()).pathname).toBe(conversation);
  await page.getByRole("button", { name: en.approve, exact: true }).click();
  await user.settled();
  await expect.poll(() => new URL(page.url()).hash).toBe("");
});

test("disabled notifications are not shown, and the tab shows the state", async () => {
  const gate = new Gate();
  const server = await fixture.ownServer(Server.scripted([{ does: [gate.move, { say: "Here." }] }]));
  const { user } = await withWorker(server);
  const { page } = user;
  await page.context().grantPermissions(["notifications"]);
  await user.send("hello");
  await expect.poll(() => page.url()).toMatch(/\/c\//);
  await hide(page, true);
  gate.open();
  await user.settled();
  await expect.poll(() => page.title()).toMatch(/^\(1\) /);
  expect(await notices(page)).toEqual([]);
  await hide(page, false);
  await expect.poll(() => page.title()).not.toMatch(/^\(/);
});

test("new release takes over without ending a turn, and old parts stay available", async () => {
  const gate = new Gate();
  const server = await fixture.ownServer(
    Server.scripted([{ does: [{ say: "One " }, gate.move, { say: "two." }] }]),
  );
  const { user } = await withWorker(server);
  const { page } = user;
  await expect.poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null)).toBe(true);
  await user.send("count");
  await page.locator(".part[data-kind=text]", { hasText: "One" }).waitFor();
  // Simulates earlier releases: the cache of the last one stays for open tabs, an older one is deleted.
  const own = await page.evaluate(async () => {
    const [own] = await caches.keys();
    for (const name of ["throughline-oldest", "throughline-older", "somebody-else"]) await caches.open(name);
    // Another address counts as another worker, like other content.
    const made = await navigator.serviceWorker.register("/sw.js?2", { scope: "/" });
    const next = made.installing ?? made.waiting ?? made.active;
    await new Promise<void>((resolve, reject) => {
      const check = (): void => {
        if (next?.state === "redundant") reject(new Error("it could not be installed"));
        else if (next?.state !== "installing") resolve();
      };
      next?.addEventListener("statechange", check);
      check();
    });
    return own;
  });
  const active = (): Promise<string> =>
    page.evaluate(async () => {
      const worker = (await navigator.serviceWorker.getRegistration("/"))?.active;
      return `${worker?.scriptURL.split("/").at(-1)} is ${worker?.state}`;
    });
  await expect.poll(active).toBe("sw.js?2 is activated");
  const names = await page.evaluate(() => caches.keys());
  expect(names).toEqual([own, "throughline-older", "somebody-else"]);
  gate.open();
  await user.settled();
  await page.locator(".part[data-kind=text]", { hasText: "One two." }).waitFor();
});
