// Parts of the page that fail to load: the server is away, or has a newer page.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

const failed = (page: Page) => page.locator(".part-failed");
const tryAgain = (page: Page) => failed(page).getByRole("button", { name: en.tryAgain });

test("view that fails to load shows an error next to the rail, and loads on retry", async () => {
  const user = await fixture.user();
  const { page } = user;
  // Several modules have this name: the first one loaded here is the history.
  await page.route("**/assets/view-*.js", (route) => route.abort());
  await page.getByRole("link", { name: en.history }).click();
  await failed(page).getByText(en.partFailed).waitFor();
  await user.picture("part-failed-view");
  expect(await user.violations()).toEqual([]);
  await page.unroute("**/assets/view-*.js");
  await tryAgain(page).click();
  await page.getByRole("heading", { name: en.history }).waitFor();
  await expect.poll(() => failed(page).count()).toBe(0);
});

test("approval whose buttons fail to load can be answered after a retry", async () => {
  const rules: Rule[] = [
    {
      times: 1,
      does: [
        { say: "A moment." },
        { call: { name: "demo_calendar", arguments: { title: "Tea", when: "2026-12-01T08:00" } } },
      ],
    },
    { does: [{ say: "It is in." }] },
  ];
  const server = await fixture.ownServer(Server.scripted(rules));
  const user = await fixture.user({}, server);
  const { page } = user;
  await page.route("**/assets/approval-*.js", (route) => route.abort());
  await user.send("Tea, please");
  const card = page.locator(".card[data-status=awaiting_approval]");
  await card.locator(".part-failed").getByText(en.partFailed).waitFor();
  await user.picture("part-failed-card");
  await expect
    .poll(() => page.locator("textarea").first().isVisible(), { message: "the rest of the page is there" })
    .toBe(true);
  await page.unroute("**/assets/approval-*.js");
  await tryAgain(page).click();
  await card.getByRole("button", { name: en.approve, exact: true }).click();
  await user.settled();
  await page.locator(".part[data-kind=text]", { hasText: "It is in." }).waitFor();
});

test("dialog that fails to load is reported above the page, and loads when it is opened again", async () => {
  const user = await fixture.user();
  const { page } = user;
  await page.route("**/assets/picker-*.js", (route) => route.abort());
  await page.locator(".picker-button").click();
  await failed(page).getByText(en.partFailed).waitFor();
  await user.picture("part-failed-above");
  await failed(page).getByRole("button", { name: en.close }).click();
  await expect.poll(() => failed(page).count()).toBe(0);
  await page.unroute("**/assets/picker-*.js");
  const dialog = page.locator("dialog.picker");
  // Opening it again loads it again. A browser that caches failures (Chromium 148, not 156) needs the reload of "Try again".
  await expect
    .poll(async () => {
      const next = (await tryAgain(page).isVisible()) ? tryAgain(page) : page.locator(".picker-button");
      await next.click({ timeout: 1_000 }).catch(() => {});
      return await dialog.isVisible();
    })
    .toBe(true);
});

test("list of conversations that fails to load is closed, and loads when it is shown again", async () => {
  const user = await fixture.anonymous();
  const { page } = user;
  await page.route("**/assets/sidebar-*.js", (route) => route.abort());
  await page.goto(`${fixture.server.url}/#token=${await fixture.server.key()}`);
  await failed(page).getByText(en.partFailed).waitFor();
  await failed(page).getByRole("button", { name: en.close }).click();
  await expect.poll(() => failed(page).count()).toBe(0);
  await page.unroute("**/assets/sidebar-*.js");
  await page.getByRole("button", { name: en.conversations, exact: true }).click();
  const list = page.locator("aside.conversations");
  await expect
    .poll(async () => {
      const next = (await tryAgain(page).isVisible()) ? tryAgain(page) : page.locator("textarea");
      await next.click({ timeout: 1_000 }).catch(() => {});
      return await list.isVisible();
    })
    .toBe(true);
});

test("part of an outdated page is not retried: the page is reloaded", async () => {
  const user = await fixture.user();
  const { page } = user;
  await page.route("**/assets/picker-*.js", (route) => route.fulfill({ status: 404, body: "" }));
  const isHome = ({ pathname }: URL): boolean => pathname === "/";
  await page.route(isHome, (route) =>
    route.request().isNavigationRequest()
      ? route.fallback()
      : route.fulfill({
          contentType: "text/html",
          body: '<script type="module" src="/assets/index-newer.js"></script><div id="root"></div>',
        }),
  );
  await page.locator(".picker-button").click();
  await failed(page).getByText(en.pageOutdated).waitFor();
  await page.unroute("**/assets/picker-*.js");
  await failed(page).getByRole("button", { name: en.reload }).click();
  await page.locator(".picker-button").click();
  await page.locator("dialog.picker").waitFor();
});
