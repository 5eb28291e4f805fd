// Many tabs of one browser: a browser opens six connections to a server that speaks HTTP/1.1, and none of them is used for an answer.

import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page, WebSocket } from "playwright-core";
import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import { Gate } from "../gate.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const TABS = 8;
const ANSWERS = 12;
/** Limits for the number of answers in this file. */
const LIMITS = `
[server.limits]
turns_per_key_max = 16
`;

/** Answers that have begun and end when the gate opens; a question with `calendar` leads to a call that needs an approval. */
function held(gate: Gate): Promise<Server> {
  const entry = { name: "demo_calendar", arguments: { title: "Tea", when: "2026-11-23T08:00" } };
  const rules: Rule[] = [
    { when: { contains: "calendar", has_result: false }, does: [{ say: "I enter it. " }, { call: entry }] },
    { when: { has_result: true }, does: [{ say: "It is entered." }] },
    { does: [{ say: "Begun. " }, gate.move, { say: "Done." }] },
  ];
  return Server.scripted(rules, LIMITS);
}

const fixture = ServerFixture.of(() => Server.start());

const text = (page: Page, words: string) => page.locator(".part[data-kind=text]").filter({ hasText: words });

const isSettled = (page: Page) => page.locator("article[aria-busy=true]").waitFor({ state: "detached" });

async function ask(page: Page, words: string, answer = "Begun."): Promise<void> {
  const field = page.locator("form:has(.composer-row) textarea");
  await field.fill(words);
  await field.press("Enter");
  await text(page, answer).waitFor();
}

/** Number of turn viewers on the server, over all connections. */
async function viewersOf(server: Server): Promise<number> {
  const headers = { authorization: `Bearer ${await server.key()}` };
  const metrics = await (await fetch(`${server.url}/metrics`, { headers })).text();
  return Number(/^throughline_viewers(?:\{.*\})? (\d+)/m.exec(metrics)?.[1]);
}

/** Connections that a page opens to follow answers. */
function followed(page: Page): { sockets: WebSocket[]; streams: string[] } {
  const opened: { sockets: WebSocket[]; streams: string[] } = { sockets: [], streams: [] };
  page.on("websocket", (socket) => opened.sockets.push(socket));
  page.on("request", (request) => {
    if (request.url().includes("/events")) opened.streams.push(request.url());
  });
  return opened;
}

test("eight tabs with twelve answers leave the ninth a connection", async () => {
  const gate = new Gate();
  const server = await fixture.ownServer(held(gate));
  const user = await fixture.user({}, server);
  const tabs = [user.page];
  while (tabs.length < TABS) tabs.push(await user.tab());
  const opened = tabs.map(followed);
  for (const [at, tab] of tabs.entries()) {
    await tab.goto(`${server.url}/`);
    await ask(tab, `question ${at}`);
  }
  // Four of them open another conversation, while the previous answer continues.
  for (const [at, tab] of tabs.slice(0, ANSWERS - TABS).entries()) {
    await tab.getByRole("link", { name: "New chat" }).click();
    await tab.getByRole("heading", { name: en.firstTitle }).waitFor();
    if (at === 0) await ask(tab, "another question for the calendar", "I enter it.");
    else await ask(tab, `another question ${at}`);
  }
  const [asking, stopping] = tabs as [Page, Page];

  // In parallel: an approval, a stop, and a tab that is opened and lists them all.
  const ninth = await user.tab();
  await Promise.all([
    asking
      .getByRole("button", { name: new RegExp(`^${en.approve}`) })
      .first()
      .click()
      .then(() => text(asking, "It is entered.").waitFor()),
    stopping
      .getByRole("button", { name: en.stop, exact: true })
      .click()
      .then(() => isSettled(stopping)),
    ninth.goto(`${server.url}/`),
  ]);
  await expect.poll(() => ninth.locator(".conversation-row").count()).toBe(ANSWERS);
  await ask(ninth, "question of the ninth");

  gate.open();
  for (const tab of [ninth, ...tabs.slice(2)]) {
    await text(tab, "Begun. Done.").waitFor();
    await isSettled(tab);
  }
  expect(opened.flatMap(({ streams }) => streams)).toEqual([]);
  expect(opened.map(({ sockets }) => sockets.length)).toEqual(tabs.map(() => 1));
  await expect.poll(() => viewersOf(server)).toBe(0);
});

test("tab follows a turn once that it shows twice, and leaves no connection", async () => {
  const gate = new Gate();
  const server = await fixture.ownServer(held(gate));
  const user = await fixture.user({}, server);
  const { page } = user;
  await ask(page, "question");
  await expect.poll(() => viewersOf(server)).toBe(1);
  // The chat continues while the history shows the same turn.
  await page.getByRole("link", { name: en.history }).click();
  await page.getByRole("link", { name: "question" }).first().click();
  await expect.poll(() => viewersOf(server)).toBe(2);
  await page.goBack();
  await expect.poll(() => viewersOf(server)).toBe(1);
  await page.close();
  await expect.poll(() => viewersOf(server)).toBe(0);
});

test("page from the worker's cache opens a socket", async () => {
  const gate = new Gate();
  const server = await fixture.ownServer(held(gate));
  const { page } = await fixture.user({ worker: "allow" }, server);
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await server.kill();
  await page.reload();
  await page.getByRole("heading", { name: en.unreachableRetrying }).waitFor();
  const opened = followed(page);
  await server.start();
  await ask(page, "question");
  expect([opened.sockets.length, opened.streams.length]).toEqual([1, 0]);
  gate.open();
  await text(page, "Begun. Done.").waitFor();
});

/** A proxy without WebSockets. */
async function withoutUpgrades(server: Server): Promise<{ url: string; stop(): void }> {
  const pass = (incoming: IncomingMessage, answer: ServerResponse): void => {
    const { connection: _, upgrade: __, ...headers } = incoming.headers;
    const { method, url } = incoming;
    const passed = request(`${server.url}${url}`, { method, headers }, (came) => {
      answer.writeHead(came.statusCode ?? 502, came.headers);
      came.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    incoming.pipe(passed);
  };
  const proxy = createServer(pass);
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => {
      proxy.close();
      proxy.closeAllConnections();
    },
  };
}

test("proxy without upgrades leaves answers unchanged", async () => {
  const gate = new Gate();
  const server = await fixture.ownServer(held(gate));
  const proxy = await withoutUpgrades(server);
  try {
    const { page } = await fixture.anonymous();
    const opened = followed(page);
    await page.goto(`${proxy.url}/#token=${await server.key()}`);
    await ask(page, "question");
    expect(opened.streams.length).toBe(1);
    gate.open();
    await text(page, "Begun. Done.").waitFor();
    await isSettled(page);
    // Not retried at once.
    await ask(page, "another question");
    await expect.poll(() => opened.streams.length).toBe(2);
    expect(opened.sockets.length).toBe(1);
  } finally {
    proxy.stop();
  }
});
