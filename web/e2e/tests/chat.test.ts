import { expect, test } from "vitest";
import { Gate } from "../gate.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of(() => Server.start());

test("printed link signs in with one click, and leaves no key in the address", async () => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.anonymous();
  const { page } = user;
  await page.goto(own.link);
  await page.locator("textarea").waitFor();
  await expect.poll(() => page.url()).toBe(`${own.url}/`);
  expect(await page.evaluate("history.length")).toBeLessThanOrEqual(2);
  await page.reload();
  await page.locator("textarea").waitFor();
  await page.evaluate("localStorage.clear()");
  await page.goto(own.link);
  await page.reload();
  await page.getByText("Sign in to Throughline").waitFor();
  await user.picture("sign-in");
});

test("suggestion on the first visit is answered by one message with its calls", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.picture("first-run");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: /Compare the weather/ }).click();
  await page.locator(".card").first().waitFor();
  await user.settled();
  await expect.poll(() => page.getByRole("article", { name: "Assistant message" }).count()).toBe(1);
  const group = page.getByRole("button", { name: /3 tool calls finished/ });
  await group.click();
  await expect.poll(() => user.cards()).toEqual(Array(3).fill("demo.weather success"));
  await page.locator(".card-head").first().click();
  await page
    .getByText(/Output/i)
    .first()
    .waitFor();
  await user.picture("weather");
  expect(await user.violations()).toEqual([]);
  await expect.poll(() => new URL(page.url()).pathname).toMatch(/^\/c\//);
});

test("approval by one key runs the tool", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Put a meeting into my calendar tomorrow at 9");
  const question = page.getByRole("group", { name: /wants to run/ });
  await question.waitFor();
  await expect.poll(() => page.title()).toContain("Waiting for you");
  await user.picture("approval");
  expect(await user.violations()).toEqual([]);
  // In a text field, letters are not shortcuts.
  await page.locator("textarea").first().press("a");
  await expect.poll(() => page.locator("textarea").first().inputValue()).toBe("a");
  expect(await question.count()).toBe(1);
  await page.locator("textarea").first().fill("");
  await page.keyboard.press("F6");
  await page.keyboard.press("a");
  await user.settled();
  await expect.poll(() => user.cards()).toEqual(["time.now success", "demo.calendar success"]);
});

test("reason of a denial reaches the model", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Put a meeting into my calendar tomorrow at 9");
  // With its shortcut.
  await page
    .getByRole("group", { name: /wants to run/ })
    .locator("kbd", { hasText: "D" })
    .waitFor();
  await page.keyboard.press("F6");
  await page.keyboard.press("d");
  await page.getByRole("textbox", { name: /^Reason/ }).fill("not on a Monday");
  await page.keyboard.press("Enter");
  await user.settled();
  await expect.poll(() => user.cards()).toEqual(["time.now success", "demo.calendar denied"]);
  await page
    .getByText(/not on a Monday/)
    .first()
    .waitFor();
  await user.picture("denied");
});

test("arguments are edited before they run", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Put a meeting into my calendar tomorrow at 9");
  await page.getByRole("button", { name: "Edit arguments" }).click();
  const field = page.getByRole("textbox", { name: "title" });
  await field.fill((await field.inputValue()).replace("Meeting", "Breakfast"));
  await user.picture("approval-edited");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "Approve with edits" }).click();
  await user.settled();
  await page.locator(".part[data-kind=text]").filter({ hasText: "Breakfast" }).waitFor();
  await expect.poll(async () => (await user.cards()).at(-1)).toBe("demo.calendar success");
  const head = page.locator(".card-head").last();
  await expect.poll(() => head.innerText()).toContain("edited by you");
  await expect.poll(() => head.locator(".summary").innerText()).toContain("Breakfast");
});

test("reload in mid-reply loses and repeats nothing", async () => {
  // The reply continues while the page is closed, and is not finished.
  const gate = new Gate();
  const numbers = Array.from({ length: 40 }, (_, at) => `${at + 1} `);
  const counted = (text: string) => ({ say: { text, tokens_per_second: 10 } });
  const rules: Rule[] = [
    { does: [counted(numbers.slice(0, 30).join("")), gate.move, counted(numbers.slice(30).join(""))] },
  ];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Count to 40");
  await page.locator(".part[data-kind=text]").first().waitFor();
  await expect.poll(() => new URL(page.url()).pathname).toMatch(/^\/c\//);
  await page.reload();
  await page.locator("article[aria-busy=true]").waitFor();
  gate.open();
  await page
    .locator(".part[data-kind=text]")
    .filter({ hasText: /\b40\b/ })
    .waitFor();
  await user.settled();
  const live = await page.locator(".part[data-kind=text]").allInnerTexts();
  await page.reload();
  await page.locator(".part[data-kind=text]").first().waitFor();
  await expect.poll(() => page.locator(".part[data-kind=text]").allInnerTexts()).toEqual(live);
  for (let n = 1; n <= 40; n += 1)
    expect(live.join(" ").match(new RegExp(`\\b${n}\\b`, "g"))?.length).toBe(1);
});

test("Esc stops the turn and keeps its content", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Count slowly to 100");
  await page.locator(".part[data-kind=text]").filter({ hasText: /\b3\b/ }).waitFor();
  await page.keyboard.press("Escape");
  await user.settled();
  await page.getByRole("button", { name: "Send" }).waitFor();
  const text = (await page.locator(".part[data-kind=text]").allInnerTexts()).join(" ");
  expect(text).toMatch(/\b3\b/);
  expect(text).not.toMatch(/\b100\b/);
});

test("message during a turn steers it, or begins the next one", async () => {
  const gate = new Gate();
  const rules: Rule[] = [
    { times: 1, does: [{ say: "One, two," }, gate.move, { say: " three." }] },
    { when: { has_result: false }, does: [{ call: { name: "time_now", arguments: {} } }] },
    { does: [{ say: "It is late." }] },
  ];
  const user = await fixture.user({}, await fixture.ownServer(Server.scripted(rules)));
  const { page } = user;
  await user.send("Count to three");
  await page.locator(".part[data-kind=text]").first().waitFor();
  await page.locator("textarea").first().fill("What time is it?");
  await page.keyboard.press("Alt+Enter");
  await page.getByText("Sends after this turn").waitFor();
  await user.picture("queued");
  gate.open();
  await page.getByRole("article", { name: "Your message" }).nth(1).waitFor();
  await page.getByText("It is late.").first().waitFor();
  await user.settled();
  await expect.poll(() => user.cards()).toEqual(["time.now success"]);
});

test("avatar acts in mid-reply, and a reload repeats no gesture", async () => {
  const user = await fixture.user();
  const { page } = user;
  const face = (name: string) => page.getByRole("img", { name: `Twine: ${name}`, exact: true });
  await face("Neutral").waitFor();
  await user.send("Wink at me while you talk");
  await face("Wink").waitFor();
  await user.settled();
  await expect.poll(() => user.cards()).toEqual(["live2d.expression success"]);
  await page.getByText("The avatar says: done.").first().waitFor();
  await user.picture("avatar");
  expect(await user.violations()).toEqual([]);
  await page.reload();
  await page.locator(".card").waitFor();
  await face("Neutral").waitFor();
  await page.getByRole("button", { name: "Expressions" }).click();
  const faces = page.getByRole("list", { name: "Expressions" });
  await expect.poll(() => faces.getByRole("button", { pressed: true }).allInnerTexts()).toEqual(["Neutral"]);
  // Unless it is repeated on demand.
  await page.locator(".card-head").click();
  await page.getByRole("button", { name: "Replay" }).click();
  await face("Wink").waitFor();
});

test("avatar on a phone is a bubble that opens, and can be hidden permanently", async () => {
  const user = await fixture.user({ width: 360, height: 740 });
  const { page } = user;
  const bubble = page.getByRole("button", { name: "Avatar: Neutral" });
  await bubble.click();
  const sheet = page.getByRole("dialog", { name: "Avatar" });
  const smile = sheet.getByRole("button", { name: "Smile", exact: true });
  expect(await smile.isVisible(), "out of sight until wanted").toBe(false);
  await sheet.getByRole("button", { name: "Expressions" }).click();
  await smile.click();
  await sheet.getByRole("img", { name: "Twine: Smile" }).waitFor();
  const right = async (): Promise<number> => {
    const close = await sheet.getByRole("button", { name: "Close" }).boundingBox();
    return close === null ? Number.POSITIVE_INFINITY : close.x + close.width;
  };
  await expect.poll(right, { message: "it is closed within the screen" }).toBeLessThan(360);
  await user.picture("avatar-sheet-phone");
  expect(await user.violations()).toEqual([]);
  await sheet.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Avatar: Smile" }).waitFor();

  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("combobox", { name: "Avatar" }).selectOption("hidden");
  await page.getByRole("button", { name: /^Avatar:/ }).waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("button", { name: "demo", exact: true }).waitFor();
  expect(await page.getByRole("button", { name: /^Avatar:/ }).count()).toBe(0);
  await page.setViewportSize({ width: 1280, height: 860 });
  await expect.poll(() => page.getByRole("complementary", { name: "Avatar" }).count()).toBe(0);
  await page.getByRole("button", { name: "Settings" }).click();
  await page.getByRole("combobox", { name: "Avatar" }).selectOption("shown");
  await page.getByRole("img", { name: "Twine: Neutral" }).waitFor();
});

test("avatar on a phone is moved away, stays there, and is closed", async () => {
  const user = await fixture.user({ width: 390, height: 800 });
  const { page } = user;
  await user.send("hello");
  await user.settled();
  const bubble = page.locator(".avatar-bubble");
  // When it has stopped moving.
  await bubble.hover({ position: { x: 30, y: 30 } });
  await page.mouse.down();
  await page.mouse.move(60, 130, { steps: 6 });
  await page.mouse.up();
  const moved = async (): Promise<number> => {
    const { x = 999, y = 999 } = (await bubble.boundingBox()) ?? {};
    return Math.max(Math.abs(x - 30), Math.abs(y - 100));
  };
  await expect.poll(moved).toBeLessThan(2);
  expect(await page.getByRole("dialog", { name: "Avatar" }).isVisible(), "a drag is no tap").toBe(false);
  await user.picture("avatar-moved-phone");
  await page.reload();
  await expect.poll(moved).toBeLessThan(2);
  // Also without dragging.
  await bubble.getByRole("button", { name: /^Avatar:/ }).click();
  await page.getByRole("button", { name: "Move to the other side" }).click();
  await page.getByRole("button", { name: "Close", exact: true }).click();
  await expect.poll(async () => (await bubble.boundingBox())?.x ?? 0).toBeGreaterThan(200);
  expect(await user.violations()).toEqual([]);
  await bubble.getByRole("button", { name: "Hide the avatar" }).click();
  await expect.poll(() => bubble.count()).toBe(0);
});

test("avatar thinks with the model, and waits with the user at an approval", async () => {
  const gate = new Gate();
  const ask = { call: { name: "demo_calendar", arguments: { title: "Tea", when: "2026-12-01T08:00" } } };
  const rules: Rule[] = [
    { times: 1, does: [gate.move, { say: "A question." }, ask] },
    { does: [{ say: "It is in." }] },
  ];
  const server = await fixture.ownServer(Server.scripted(rules));
  const user = await fixture.user({ width: 1440 }, server);
  const { page } = user;
  const avatar = page.getByRole("complementary", { name: "Avatar" });
  await user.send("Tea, please");
  await avatar.getByRole("img", { name: "Twine: Thinking" }).waitFor();
  await user.picture("avatar-thinks");
  gate.open();
  await avatar.getByRole("img", { name: "Twine: Smile" }).waitFor();
  await user.picture("avatar-waits");
  expect(await user.violations()).toEqual([]);
  await page.locator(".card").getByRole("button", { name: "Approve", exact: true }).click();
  await user.settled();
  await avatar.getByRole("img", { name: "Twine: Neutral" }).waitFor();
});

test("edit creates a branch, and both branches can be shown", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("What time is it?");
  await page.locator(".card").waitFor();
  await user.settled();
  await page.getByRole("button", { name: "Edit" }).first().click();
  await page.getByRole("textbox", { name: "Your message" }).fill("Smile at me");
  await page.getByRole("list", { name: "Chat" }).getByRole("button", { name: "Send" }).click();
  await page.getByText("2 of 2").waitFor();
  await expect.poll(async () => (await user.cards()).join()).toContain("live2d.");
  await page.getByRole("button", { name: "Previous answer" }).click();
  await page.getByText("1 of 2").waitFor();
  await expect.poll(() => user.cards()).toEqual(["time.now success"]);
});

test("killed server continues the same message after its restart", async () => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.user({}, own);
  const { page } = user;
  await user.send("Count slowly to 30");
  await page.locator(".part[data-kind=text]").filter({ hasText: /\b2\b/ }).waitFor();
  await own.kill();
  await page.getByText("Reconnecting; nothing is lost").waitFor();
  await user.picture("reconnecting");
  await own.start();
  await user.settled();
  await expect.poll(() => page.getByRole("article", { name: "Assistant message" }).count()).toBe(1);
  await page
    .locator(".part[data-kind=text]")
    .filter({ hasText: /\b30\b/ })
    .waitFor();
});

test("language and theme apply at once and are stored", async () => {
  const user = await fixture.user({ locale: "zh-CN", colorScheme: "dark" });
  const { page } = user;
  await page.getByRole("heading", { name: "有什么可以帮你？" }).waitFor();
  await expect.poll(() => page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
  await user.picture("first-run-zh-dark");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "设置" }).click();
  await page.getByLabel("语言").selectOption("en");
  await page.getByLabel("Theme").selectOption("light");
  await page.reload();
  await page.getByRole("heading", { name: "What can I do for you?" }).waitFor();
  await expect.poll(() => page.evaluate("document.documentElement.dataset.theme")).toBe("light");
});

test("phone shows everything, and nothing is wider than the screen", async () => {
  const user = await fixture.user({ width: 360, height: 740, locale: "zh-CN", colorScheme: "dark" });
  const { page } = user;
  await user.send("明天早上九点在日历里加一个会议");
  await page.getByRole("button", { name: /^批准/ }).waitFor();
  await user.picture("phone-approval");
  expect(await user.violations()).toEqual([]);
  await expect.poll(() => page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(360);
  await page.getByRole("button", { name: /^批准/ }).click();
  await user.settled();
  await user.picture("phone");
  const wide = () =>
    page.evaluate(
      "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > 361 && !e.closest('.pre')).map((e) => e.className).slice(0, 3)",
    );
  await expect.poll(wide).toEqual([]);
});

test.each(["en-GB", "zh-CN"] as const)(
  "row below the field is one line on a phone, also during a turn, %s",
  async (locale) => {
    const user = await fixture.user({ width: 360, height: 740, locale });
    const { page } = user;
    /** Vertical center of each visible element. */
    const lines = () =>
      page.locator(".composer-row > *").evaluateAll((all) => [
        ...new Set(
          all
            .map((one) => one.getBoundingClientRect())
            .filter(({ height }) => height > 0)
            .map(({ top, height }) => Math.round((top + height / 2) / 4)),
        ),
      ]);
    await page.getByRole("button", { name: "demo", exact: true }).waitFor();
    await expect.poll(lines).toHaveLength(1);
    await user.picture(`phone-composer-${locale}`);
    await user.send(locale === "zh-CN" ? "明天早上九点在日历里加一个会议" : "Put a meeting into my calendar");
    await page.getByRole("button", { name: /^(Stop|停止)$/ }).waitFor();
    await expect.poll(lines).toHaveLength(1);
  },
);

test("picture is sent with a question", async () => {
  const user = await fixture.user();
  const { page } = user;
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFElEQVR4nGP8z8DAwMDAxAADCBYAG3ECAcK9bJUAAAAASUVORK5CYII=";
  await page.locator("input[type=file]").setInputFiles({
    name: "dot.png",
    mimeType: "image/png",
    buffer: Buffer.from(png, "base64"),
  });
  // Sent at once: the upload may still be running.
  await user.send("What is in this picture?");
  await user.settled();
  await page.getByRole("img", { name: "Image" }).first().waitFor();
});

test("model without tools is reported, with one click to text mode", async () => {
  const own = await fixture.ownServer(
    Server.start(
      'rules = [{ times = 1, then = { refuse_tools = "ollama" } }, { then = [{ say = "Without tools I say this." }] }]',
    ),
  );
  const user = await fixture.user({}, own);
  const { page } = user;
  await user.send("Hello");
  await page.getByRole("button", { name: "Switch to text mode" }).waitFor();
  await user.picture("error");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "Switch to text mode" }).click();
  await page.getByText("Without tools I say this.").first().waitFor();
  await expect.poll(() => user.isMode("text")).toBe(true);
});

test("browser with a revoked key is signed out at once", async () => {
  const own = await fixture.ownServer(Server.start());
  const user = await fixture.user({}, own);
  const { page } = user;
  await user.send("Count slowly to 100");
  await page.locator(".part[data-kind=text]").first().waitFor();
  const key_id = (await own.key()).split("_")[1] ?? "";
  await (await own.client()).call("DELETE /v1/keys/{key_id}", { path: { key_id } });
  await page.getByText("Sign in to Throughline").waitFor();
  await expect.poll(() => page.evaluate("localStorage.getItem('throughline.key')")).toBeNull();
});

test("approval survives a reload, and another tab can answer it", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Put a meeting into my calendar tomorrow at 9");
  await page.getByRole("group", { name: /wants to run/ }).waitFor();
  await page.reload();
  await page.getByRole("group", { name: /wants to run/ }).waitFor();
  const other = await user.tab();
  await other.goto(page.url());
  await other.getByRole("button", { name: /^Approve/ }).click();
  await user.settled();
  await expect.poll(() => user.cards()).toEqual(["time.now success", "demo.calendar success"]);
  await other.locator("article[aria-busy=true]").waitFor({ state: "detached" });
  await expect.poll(() => other.locator(".card").count()).toBe(2);
});

test("stop at an approval ends the call without running it", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Put a meeting into my calendar tomorrow at 9");
  await page.getByRole("group", { name: /wants to run/ }).waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await user.settled();
  await expect.poll(() => page.getByRole("group", { name: /wants to run/ }).count()).toBe(0);
  await expect.poll(async () => (await user.cards()).at(-1)).toMatch(/demo.calendar (cancelled|not_started)/);
});

test("whole answer can be operated by keyboard", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("What time is it?");
  await page.locator(".card").waitFor();
  await user.settled();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Alt+ArrowDown");
  const focused = () => page.evaluate("document.activeElement.getAttribute('data-kind')");
  await expect.poll(focused).toBe("text");
  await page.keyboard.press("Alt+ArrowDown");
  await expect.poll(focused).toBe("tool_call");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: /time.now/, expanded: true }).waitFor();
  await page.keyboard.press("/");
  await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA");
});
