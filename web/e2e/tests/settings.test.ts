// Settings: account, keys, remembered decisions, appearance and export.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { BrowserOptions } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(async () => {
  const server = await Server.start();
  const client = await server.client();
  for (const text of ["Put a meeting into my calendar tomorrow at 9", "What time is it?"]) {
    const { events, turn_id } = await client.start({ input: [{ type: "text", text }] });
    for await (const event of events) {
      if (event.type !== "approval_request") continue;
      await client.call("POST /v1/turns/{turn_id}/approvals/{approval_id}", {
        path: { turn_id, approval_id: event.approval_id },
        body: { decision: "approve", remember: "always" },
      });
    }
  }
  return server;
});

const panel = (name: string) => ({ name, exact: true }) as const;

test("remembered decision is listed and revoked", async () => {
  const user = await fixture.user({}, fixture.server, "/settings");
  const { page } = user;
  await page.getByRole("region", panel("Account")).getByText("Signed in as").waitFor();
  const remembered = page.getByRole("region", panel("Remembered answers"));
  const row = remembered.getByRole("listitem").filter({ hasText: "demo.calendar" });
  await row.getByText("Allowed").waitFor();
  await expect.poll(() => row.textContent()).toContain("Always · Only with these arguments");
  await row.getByText("Run demo.calendar").waitFor();
  await row.scrollIntoViewIfNeeded();
  await remembered.getByRole("searchbox").fill("weather");
  await remembered.getByText("No matching answers").waitFor();
  await remembered.getByRole("searchbox").fill("CALENDAR");
  await user.picture("settings");
  await row.getByRole("button").click();
  await remembered.getByText("Nothing is remembered.").waitFor();
  const client = await fixture.server.client();
  expect((await client.call("GET /v1/remembered", { query: { everywhere: true } })).items).toEqual([]);
});

test("all conversations are exported as one file of importable ones", async () => {
  const user = await fixture.user({}, fixture.server, "/settings");
  const { page } = user;
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export all conversations" }).click();
  const file = await download;
  expect(file.suggestedFilename()).toMatch(/^throughline-\d{4}-\d\d-\d\d\.zip$/);
  const bytes = readFileSync(await file.path());
  await page.getByText("2 conversations exported").waitFor();
  const texts = unzipped(bytes);
  expect(texts.map(([name]) => name).every((name) => /^conv_\w+\.jsonl$/.test(name))).toBe(true);
  const client = await fixture.server.client();
  for (const [, text] of texts) await client.call("POST /v1/conversations/import", { body: text });
  expect((await client.call("GET /v1/conversations")).items).toHaveLength(4);
});

test("key is revoked after a confirmation, and signing out ends the session", async () => {
  // Signing out revokes the key that other tests use.
  const server = await fixture.ownServer(Server.start());
  const client = await server.client();
  const { id } = await client.call("POST /v1/keys", { body: { name: "old laptop", scopes: ["chat"] } });
  const user = await fixture.user({}, server, "/settings");
  const { page } = user;
  const keys = page.getByRole("region", panel("Keys and devices"));
  await keys.getByText("This browser").waitFor();
  await keys.getByRole("button", { name: "Revoke key old laptop" }).click();
  await expect.poll(() => keys.getByText(id).count()).toBe(1);
  await keys.getByRole("button", { name: "Really revoke?" }).click();
  await expect.poll(() => keys.getByText(id).count()).toBe(0);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.locator("#key").waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
  await expect.poll(() => page.evaluate("localStorage.getItem('throughline.key')")).toBeNull();
});

test("sign-in page lists all ways to sign in, with commands in monospace", async () => {
  const user = await fixture.anonymous();
  const { page } = user;
  await page.goto(fixture.server.url);
  await page.getByRole("heading", { name: "Sign in to Throughline" }).waitFor();
  await expect
    .poll(() => page.locator("form code").allTextContents())
    .toEqual(["throughline serve", "throughline keys create --name laptop"]);
  expect(await page.locator("form").textContent()).not.toContain("`");
  await expect.poll(() => page.locator("form li").nth(1).textContent()).toContain("without restarting");
  await user.picture("sign-in");
  expect(await user.violations()).toEqual([]);
});

test.each<[string, BrowserOptions]>([
  ["zh-dark", { locale: "zh-CN", colorScheme: "dark", width: 820 }],
  ["phone", { width: 390, height: 844 }],
  ["phone-zh-dark", { locale: "zh-CN", colorScheme: "dark", width: 390, height: 844 }],
])("settings are complete and readable: %s", async (name, kind) => {
  const user = await fixture.user(kind, fixture.server, "/settings");
  const { page } = user;
  await page.locator(".settings-facts").nth(1).waitFor();
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  await user.picture(`settings-${name}`);
  expect(await user.violations()).toEqual([]);
});

/** The files of an uncompressed archive, in order. */
function unzipped(bytes: Buffer): [string, string][] {
  const files: [string, string][] = [];
  for (let at = 0; bytes.readUInt32LE(at) === 0x04034b50; ) {
    const [size, name] = [bytes.readUInt32LE(at + 18), bytes.readUInt16LE(at + 26)];
    const content = at + 30 + name;
    files.push([bytes.toString("utf8", at + 30, content), bytes.toString("utf8", content, content + size)]);
    at = content + size;
  }
  return files;
}
