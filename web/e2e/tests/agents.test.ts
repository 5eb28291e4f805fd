import { expect, test } from "vitest";
import type { BrowserOptions, BrowserUser } from "../browser.ts";
import { Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const fixture = ServerFixture.of();

/** A user at the agents view of a server of their own. */
async function openAgents(options: BrowserOptions = {}): Promise<{ user: BrowserUser; server: Server }> {
  const server = await fixture.ownServer(Server.start());
  const user = await fixture.user(options, server, "/agents");
  await user.page.locator(".agent-row").first().waitFor();
  return { user, server };
}

/** Duplicates the current agent. */
async function duplicated({ page }: BrowserUser, name: string): Promise<void> {
  await page.getByRole("button", { name: "Duplicate to edit" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill(name);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name, level: 2 }).waitFor();
}

async function saved({ page }: BrowserUser): Promise<void> {
  await page.keyboard.press("Control+s");
  await page.getByText("Saved. Applies to new turns.").waitFor();
}

test("configured agent is copied, edited, and used in the next turn", async () => {
  const { user } = await openAgents();
  const { page } = user;
  await page.getByText("defined in the configuration file").waitFor();
  // As text: no disabled fields.
  await page.locator("dt", { hasText: "System prompt" }).waitFor();
  expect(await page.getByRole("textbox", { name: "System prompt" }).count()).toBe(0);
  expect(await page.locator(".agent-form :disabled").count()).toBe(0);
  // The index links to a section, the search to a setting.
  await page.getByRole("button", { name: "Rules", exact: true }).click();
  await expect
    .poll(() => page.locator("#agent-part-rules").evaluate((part) => part === document.activeElement))
    .toBe(true);
  const settings = page.getByRole("searchbox", { name: "Search settings and tools" });
  await settings.fill("temperature");
  await expect.poll(() => page.locator(".agent-form dt").allTextContents()).toEqual(["Temperature "]);
  await settings.fill("demo.wea");
  await page.getByText("1 found").waitFor();
  await page.getByText("demo.weather", { exact: true }).first().waitFor();
  await settings.fill("no such thing");
  await page.getByText("Nothing found").waitFor();
  await user.picture("agents-searched");
  await settings.fill("");
  await expect.poll(() => page.getByRole("button", { name: "Delete" }).count()).toBe(0);
  await user.picture("agents-file");
  expect(await user.violations()).toEqual([]);
  await duplicated(user, "careful");

  // The preview shows unsaved changes as the model would get them.
  const preview = page.getByRole("region", { name: "What the model sees" });
  await page.getByRole("textbox", { name: "System prompt" }).fill("I am {{ agent }}.");
  await preview.getByText("I am careful.").waitFor();
  await preview.getByRole("button", { name: "VCP" }).click();
  await preview.getByText(/<<<\[TOOL_REQUEST\]>>>/).waitFor();

  // A rule, and a sample call that shows which rule decides.
  await page.getByRole("button", { name: "Add a rule" }).click();
  const rule = page.getByRole("listitem", { name: "Rule 1" });
  await rule.getByRole("textbox", { name: "Tools" }).fill("demo.weather");
  await rule.getByRole("button", { name: "Argument condition" }).click();
  await rule.getByRole("textbox", { name: "Argument" }).fill("city");
  await rule.getByRole("textbox", { name: "Value" }).fill("Paris");
  await page.getByLabel("Choose a tool").selectOption("demo.weather");
  await page.getByText('rule:1 ask demo.weather city = "Paris"').waitFor();
  await rule.getByText("Matched").waitFor();
  await user.picture("agents-rule");
  await page.getByRole("textbox", { name: "Arguments" }).fill('{"city": "Oslo"}');
  await page.getByText("effect:read").waitFor();

  await page.getByLabel("Switch for demo.fail").selectOption("Off");
  await page.getByText(/Not offered: disabled/).waitFor();
  await user.picture("agents");
  expect(await user.violations()).toEqual([]);
  await saved(user);

  // The next turn follows the rule.
  await page.getByRole("button", { name: "Chat with this agent" }).click();
  await user.send("What's the weather in Paris?");
  await page
    .getByRole("button", { name: /^Approve/ })
    .first()
    .waitFor();
  await user.picture("agents-asks");
  await page
    .getByRole("button", { name: /^Approve/ })
    .first()
    .click();
  await user.settled();
});

test("text rules have a live preview, are saved in order, and apply to the next turn", async () => {
  const { user, server } = await openAgents();
  const { page } = user;
  await page.locator(".agent-row").first().click();
  await duplicated(user, "discreet");
  const rules = page.getByRole("region", { name: "Text rules", exact: true });
  await rules.getByRole("button", { name: "Add a text rule" }).click();
  const first = rules.getByRole("listitem", { name: "Text rule 1" });
  // An unfinished pattern is no error; an invalid one is reported at its rule.
  expect(await first.locator(".text-error").count()).toBe(0);
  await first.getByRole("textbox", { name: "Pattern" }).fill("(demo");
  await first.locator(".text-error").getByText("unclosed group").waitFor();
  await first.getByRole("textbox", { name: "Pattern" }).fill("(?i)one message");
  await first.getByRole("textbox", { name: "Replacement" }).fill("house note");
  await rules.getByRole("button", { name: "Add a text rule" }).click();
  const second = rules.getByRole("listitem", { name: "Text rule 2" });
  await second.getByRole("textbox", { name: "Pattern" }).fill("house");
  await second.getByLabel("Matches are").selectOption("hidden");
  await expect.poll(() => second.getByRole("button", { name: "User messages" }).isDisabled()).toBe(true);
  await second.getByLabel("In what").selectOption("the model is told");
  await second.getByRole("button", { name: "User messages" }).click();

  await rules.getByRole("textbox", { name: "Example text" }).fill("I am One Message of this house.");
  await rules.locator("[data-side=shown]").getByText("I am house note of this house.").waitFor();
  await rules.locator("[data-side=model]").getByText("I am One Message of this .").waitFor();
  await first.getByText("1 match").waitFor();
  await rules.getByLabel("The text is").selectOption("a user message");
  await second.getByText("1 match").waitFor();
  await expect.poll(() => first.getByText(/match/).count()).toBe(1);
  await user.picture("agents-text-rules");
  expect(await user.violations()).toEqual([]);

  // In the other order the second rule has nothing to match.
  await second.getByRole("button", { name: "Move up: Text rule 2" }).click();
  await rules
    .getByRole("listitem", { name: "Text rule 1" })
    .getByRole("button", { name: "User messages", pressed: true })
    .waitFor();
  await saved(user);
  const client = await server.client();
  const { settings } = await client.call("GET /v1/agents/{agent}", { path: { agent: "discreet" } });
  expect(settings.text_rules?.map(({ pattern }) => pattern)).toEqual(["house", "(?i)one message"]);

  await page.getByRole("button", { name: "Chat with this agent" }).click();
  await user.send("Tell me about yourself in detail, with Markdown");
  await user.settled();
  const text = () => page.locator("article").last().textContent();
  await expect.poll(text).toContain("house note");
  expect((await text())?.toLowerCase()).not.toContain("one message");
});

test("permission preset decides calls without a matching rule", async () => {
  const { user, server } = await openAgents();
  const { page } = user;
  await page.locator(".agent-row").first().click();
  await duplicated(user, "reader");
  const rules = page.getByRole("region", { name: "Rules", exact: true });
  await page.getByLabel("Choose a tool").selectOption("demo.calendar");
  await rules.getByText("effect:write").waitFor();
  await rules.getByLabel("If no rule matches").selectOption("Read only");
  await rules.getByText("permissions:read_only").waitFor();
  await rules.getByText("would be denied").waitFor();
  await rules.getByLabel("If no rule matches").selectOption("Everything");
  await rules.getByText("permissions:everything").waitFor();
  await rules.getByLabel("If no rule matches").scrollIntoViewIfNeeded();
  await user.picture("agents-permissions");
  expect(await user.violations()).toEqual([]);
  await rules.getByLabel("If no rule matches").selectOption("Read only");
  await saved(user);
  const client = await server.client();
  const { settings } = await client.call("GET /v1/agents/{agent}", { path: { agent: "reader" } });
  expect(settings.permissions).toBe("read_only");
});

test("typed settings survive a failed save and leaving the view", async () => {
  const { user, server } = await openAgents();
  const { page } = user;
  await page.locator(".agent-row").first().click();
  await duplicated(user, "kept");
  await page.getByRole("textbox", { name: "System prompt" }).fill("Hello {{ usr }}");
  await page.getByRole("textbox", { name: "Tool rounds" }).fill("many");
  await page.keyboard.press("Control+s");
  await page.getByRole("alert").getByText("invalid_agent").waitFor();
  await page.locator('[aria-invalid="true"]:focus').waitFor();
  await expect.poll(() => page.locator('[aria-invalid="true"]').count()).toBe(1);
  await expect
    .poll(() => page.getByRole("textbox", { name: "System prompt" }).inputValue())
    .toBe("Hello {{ usr }}");
  await expect.poll(() => page.getByRole("textbox", { name: "Tool rounds" }).inputValue()).toBe("many");
  await user.picture("agents-refused");
  expect(await user.violations()).toEqual([]);

  await page.locator(`a[href="/history"]`).click();
  await page.getByRole("dialog").waitFor();
  await user.picture("agents-leave");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "Keep editing" }).click();
  await page.getByRole("textbox", { name: "System prompt" }).fill("Hello {{ user }}");
  await page.getByRole("textbox", { name: "Tool rounds" }).fill("");
  await page.goBack();
  await page.getByRole("dialog").getByRole("button", { name: /^Save/ }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.goto(`${server.url}/agents?agent=kept`);
  await page.getByRole("textbox", { name: "System prompt" }).waitFor();
  await expect
    .poll(() => page.getByRole("textbox", { name: "System prompt" }).inputValue())
    .toBe("Hello {{ user }}");
  await expect.poll(() => page.getByRole("textbox", { name: "Tool rounds" }).inputValue()).toBe("5");

  // Another user saves first.
  const elsewhere = await user.tab();
  await elsewhere.goto(`${server.url}/agents?agent=kept`);
  await elsewhere.getByRole("textbox", { name: "System prompt" }).fill("Theirs");
  await elsewhere.keyboard.press("Control+s");
  await elsewhere.getByText("Saved. Applies to new turns.").waitFor();
  await page.getByRole("textbox", { name: "System prompt" }).fill("Mine");
  await page.keyboard.press("Control+s");
  await page.getByText("changed_meanwhile").waitFor();
  await user.picture("agents-conflict");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "Overwrite with mine" }).click();
  await page.getByText("Saved. Applies to new turns.").waitFor();

  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("button", { name: "Confirm delete" }).click();
  await page.getByRole("heading", { name: "default", level: 2 }).waitFor();
});

test("agents view works in Chinese, in the dark and on a phone", async () => {
  const { user } = await openAgents({ locale: "zh-CN", colorScheme: "dark", width: 360, height: 740 });
  const { page } = user;
  await user.picture("agents-phone-list");
  // The list only: an agent is one step further.
  expect(await page.getByRole("heading", { level: 2 }).count()).toBe(0);
  expect(await user.violations()).toEqual([]);
  await page.getByRole("button", { name: "新建智能体" }).click();
  await page.getByRole("textbox", { name: "名称" }).fill("小助手");
  await page.getByRole("button", { name: "创建", exact: true }).click();
  await page.getByRole("heading", { name: "小助手", level: 2 }).waitFor();
  await page.getByRole("button", { name: "添加规则" }).click();
  await page.getByLabel("选择工具").selectOption("demo.calendar");
  await page.getByText("rule:1 ask").waitFor();
  // A condition without an argument would be lost: it is reported, and not saved.
  await page.getByRole("button", { name: "参数条件" }).click();
  await page.getByText("每个条件都要有各自的参数。").waitFor();
  await expect.poll(() => page.getByRole("button", { name: /^保存/ }).isDisabled()).toBe(true);
  await page.getByRole("textbox", { name: "参数", exact: true }).first().fill("when");
  const wide = () =>
    page.evaluate(
      "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > 361 && !e.closest('.pre')).map((e) => e.className).slice(0, 3)",
    );
  await expect.poll(wide).toEqual([]);
  await user.picture("agents-phone");
  expect(await user.violations()).toEqual([]);
  await page.getByRole("link", { name: "全部智能体" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "放弃" }).click();
  await page.getByRole("link", { name: /小助手/ }).click();
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.getByRole("region", { name: "模型看到的内容" }).locator("pre").waitFor();
  await user.picture("agents-zh-dark");
  expect(await user.violations()).toEqual([]);
});
