// Connecting a model, from the first run to its first answer.

import { expect, test } from "vitest";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const KEY = "sk-right-0123456789";
const SCRIPT = `
models = ["talks", "costs"]
key = "${KEY}"

[[rules]]
when = { model = "costs" }
then = { http = { status = 402 } }

[[rules]]
then = [{ say = "Greetings from far away." }]
`;

const fixture = ServerFixture.of(() => Server.startConnectable(SCRIPT));

test("first run goes from a wrong key to the right one, a model and an answer, without exposing the key", async () => {
  const user = await fixture.user();
  const { page } = user;
  const answers: string[] = [];
  page.on("response", (response) => {
    if (!response.url().includes("/events")) {
      void response.text().then(
        (text) => answers.push(text),
        () => undefined,
      );
    }
  });
  await page.locator("textarea").fill("What I was about to ask");
  await page.getByRole("main").getByRole("button", { name: "Connect a model" }).first().click();
  const dialog = page.getByRole("dialog", { name: "Connect a model" });
  await dialog.getByRole("button", { name: /LM Studio/ }).waitFor();
  await user.picture("connect-list");
  expect(await user.violations(), "the list").toEqual([]);
  await dialog.getByRole("searchbox").fill("deeps");
  await expect.poll(() => dialog.getByRole("listitem").count()).toBe(1);
  await dialog.getByRole("button", { name: /DeepSeek/ }).click();

  await expect
    .poll(() => dialog.getByRole("link", { name: /Get a key from DeepSeek/ }).getAttribute("href"))
    .toContain("https://platform.deepseek.com");
  await dialog.getByLabel("API key").fill("sk-wrong-0123456789");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("The key was rejected").waitFor();
  await user.picture("connect-wrong-key");
  expect(await user.violations(), "a wrong key").toEqual([]);

  await dialog.getByLabel("API key").fill(KEY);
  await dialog.getByRole("button", { name: "Test and connect" }).click();
  await dialog.getByText("Choose a model").waitFor();
  await user.picture("connect-models");
  expect(await user.violations(), "the models").toEqual([]);
  await dialog.getByRole("button", { name: "costs" }).click();
  await dialog.getByRole("alert").getByText("no credit left").waitFor();
  await dialog.getByRole("button", { name: "talks" }).click();
  await dialog.waitFor({ state: "detached" });

  await expect
    .poll(() => page.locator("textarea").inputValue(), { message: "what was typed is there" })
    .toBe("What I was about to ask");
  await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe("TEXTAREA");
  await page.getByRole("button", { name: "deepseek/talks" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("Greetings from far away.").first().waitFor();
  await user.settled();
  await user.picture("connect-answered");

  const kept = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
  );
  expect(kept).not.toContain(KEY);
  await expect.poll(() => answers.length).toBeGreaterThan(5);
  for (const answer of answers) expect(answer).not.toContain(KEY);
  expect(await page.content()).not.toContain(KEY);

  // After a restart it still answers.
  await fixture.server.kill();
  await fixture.server.start();
  await page.goto(`${fixture.server.url}/`);
  await page.getByRole("button", { name: "deepseek/talks" }).waitFor();
  await user.send("Once more");
  await page.getByText("Greetings from far away.").first().waitFor();

  // The agent is chosen in the same place; without its key it is removed.
  await user.openModels();
  await dialog.getByRole("button", { name: /default/ }).click();
  await page.getByRole("button", { name: "demo", exact: true }).waitFor();
  await user.openModels();
  await dialog.getByRole("button", { name: /DeepSeek/ }).click();
  await dialog.getByText("Choose a model").waitFor();
  await dialog.getByRole("button", { name: "Delete key" }).click();
  await dialog.getByRole("button", { name: /DeepSeek\s*Needs a key/ }).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test("unreachable upstream is reported on a phone, in Chinese, in the dark", async () => {
  const user = await fixture.user({ locale: "zh-CN", colorScheme: "dark", width: 360, height: 740 });
  const { page } = user;
  await page.getByRole("main").getByRole("button", { name: "连接模型" }).first().click();
  const dialog = page.getByRole("dialog", { name: "连接模型" });
  await dialog.getByRole("button", { name: /在本机发现/ }).waitFor();
  await user.picture("connect-list-zh-dark-phone");
  expect(await user.violations(), "the list").toEqual([]);
  await dialog.getByRole("button", { name: /Groq/ }).click();
  await dialog.getByLabel("API 密钥").fill("gsk-0123456789");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("无法连接").waitFor();
  await user.picture("connect-unreachable-zh-dark-phone");
  expect(await user.violations(), "unreachable").toEqual([]);
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth);
  await expect.poll(wide, { message: "nothing is wider than the screen" }).toBeLessThanOrEqual(360);
});

test("dialog of models is reachable from every view by keyboard", async () => {
  const user = await fixture.user();
  const { page } = user;
  await page.goto(`${fixture.server.url}/tester`);
  await page.getByRole("button", { name: "Settings" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Connect a model" }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Connect a model" });
  await dialog.getByRole("button", { name: /Groq/ }).waitFor();
  await dialog.getByRole("searchbox").focus();
  await page.keyboard.type("groq");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await dialog.getByLabel("API key").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test("custom address shows its errors, is connected, and can be removed", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.openModels();
  const dialog = page.getByRole("dialog", { name: "Connect a model" });
  await dialog.getByRole("searchbox").fill("my own");
  await dialog.getByRole("button", { name: /Custom endpoint/ }).click();
  await dialog.getByRole("heading", { name: "Custom endpoint" }).waitFor();
  const alert = dialog.getByRole("alert");
  await dialog.locator("input:focus").waitFor();
  await page.keyboard.type("http://127.0.0.1:9/v1");
  await page.keyboard.press("Enter");
  await alert.getByText("Can't connect").waitFor();
  await user.picture("connect-own-unreachable");
  expect(await user.violations(), "unreachable").toEqual([]);

  const { port } = new URL(fixture.server.upstream);
  const name = `local-${port}`;
  const address = dialog.getByLabel("Base URL");
  await address.fill("http://169.254.169.254/v1");
  await page.keyboard.press("Enter");
  await alert.getByText(/^the request was not sent/).waitFor();
  await address.fill(fixture.server.upstream);
  await expect.poll(() => dialog.getByLabel("Name").inputValue()).toBe(name);
  await page.keyboard.press("Enter");
  await alert.getByText("An API key is required.").waitFor();
  await dialog.getByLabel(/API key/).fill(KEY);
  await page.keyboard.press("Enter");
  await dialog.getByText("Choose a model").waitFor();
  await dialog.getByRole("searchbox").fill("talk");
  await dialog.getByRole("button", { name: "talks" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: `${name}/talks` }).waitFor();
  await user.send("Hello");
  await page.getByText("Greetings from far away.").first().waitFor();
  await user.settled();

  await user.openModels();
  await dialog.getByRole("button", { name: new RegExp(`^${name}\\s*Connected`) }).click();
  await dialog.getByText("Choose a model").waitFor();
  await dialog.getByRole("button", { name: "Delete endpoint" }).click();
  await dialog.getByRole("button", { name: /Custom endpoint/ }).waitFor();
  await dialog.getByRole("button", { name: new RegExp(`^${name}`) }).waitFor({ state: "detached" });
});

test("remote user gets instructions for the server's machine, on a phone, in Chinese, in the dark", async () => {
  const user = await fixture.user({ locale: "zh-CN", colorScheme: "dark", width: 360, height: 740 });
  const { page } = user;
  // As a proxy reports it.
  await page.route("**/connect", async (route) => {
    await route.continue({ headers: { ...route.request().headers(), "x-forwarded-for": "203.0.113.7" } });
  });
  await page.getByRole("main").getByRole("button", { name: "连接模型" }).first().click();
  const dialog = page.getByRole("dialog", { name: "连接模型" });
  await dialog.getByRole("button", { name: /自定义接口/ }).waitFor();
  await user.picture("connect-list-own-zh-dark-phone");
  await dialog.getByRole("button", { name: /自定义接口/ }).click();
  await user.picture("connect-own-zh-dark-phone");
  await dialog.locator("input:focus").waitFor();
  await page.keyboard.type("http://gpu-box:8000/v1");
  await page.keyboard.press("Enter");
  const command = "throughline connect gpu-box-8000 --base-url 'http://gpu-box:8000/v1' --api openai-chat";
  await dialog.getByRole("alert").getByText(command).waitFor();
  await user.picture("connect-own-elsewhere-zh-dark-phone");
  expect(await user.violations()).toEqual([]);
  const wide = () => dialog.evaluate((dialog) => dialog.scrollWidth - dialog.clientWidth);
  await expect.poll(wide, { message: "nothing is wider than the dialog" }).toBe(0);
});
