// Audio of a model: played as it arrives, between the other blocks of one message.

import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import type { BrowserUser } from "../browser.ts";
import { type Rule, Server } from "../server.ts";
import { ServerFixture } from "../server-fixture.ts";

const SPOKEN =
  "Good morning! The weather is lovely today, and so are you. Shall we go out and see the river?";

const RULES: Rule[] = [
  // Gives the test time while the audio plays.
  { when: { contains: "at length" }, does: [{ say: "Listen:" }, { speak: Array(4).fill(SPOKEN).join(" ") }] },
  {
    when: { contains: "Speak", has_result: false },
    does: [{ say: "Listen:" }, { speak: SPOKEN }, { call: { name: "time_now", arguments: {} } }],
  },
  { when: { has_result: true }, does: [{ say: "That was all." }] },
  { does: [{ say: "Yes?" }] },
];

const fixture = ServerFixture.of(() => Server.scripted(RULES));

const bubble = ({ page }: BrowserUser) => page.getByRole("region", { name: en.voice });
const position = async (user: BrowserUser): Promise<number> =>
  Number(await bubble(user).getByRole("slider", { name: en.voicePosition }).inputValue());

/** Records the shapes of the avatar's mouth. */
async function watchMouth({ page }: BrowserUser): Promise<void> {
  await page.evaluate(() => {
    const shapes = new Set<string>();
    (window as unknown as { shapes: Set<string> }).shapes = shapes;
    const capture = (): void => {
      shapes.add(document.querySelector(".avatar-figure [data-part=mouth]")?.innerHTML ?? "");
      requestAnimationFrame(capture);
    };
    capture();
  });
}

const shapes = ({ page }: BrowserUser): Promise<number> =>
  page.evaluate(() => (window as unknown as { shapes: Set<string> }).shapes.size);

test("voice plays automatically, moves the mouth, and is between the other blocks", async () => {
  const user = await fixture.user({ motion: "no-preference" });
  const { page } = user;
  await page.locator(".avatar-figure svg").waitFor();
  await watchMouth(user);
  await user.send("Speak, please");
  await bubble(user).getByRole("button", { name: en.pauseVoice }).waitFor();
  await expect.poll(() => position(user)).toBeGreaterThan(0.5);
  // The mouth changes its shape repeatedly.
  await expect.poll(() => shapes(user)).toBeGreaterThan(8);
  await user.settled();
  const kinds = () =>
    page
      .locator("article .part[data-kind]")
      .evaluateAll((parts) => parts.map((part) => part.getAttribute("data-kind")));
  await expect.poll(kinds).toEqual(["text", "audio", "tool_call", "text"]);
  await expect.poll(() => bubble(user).innerText()).toContain(SPOKEN);
  // The audio outlasts the turn, and ends.
  await bubble(user).getByRole("button", { name: en.playVoice }).waitFor();
});

test("voice is paused, sought, replayed after a reload, and saved", async () => {
  const user = await fixture.user();
  const { page } = user;
  await user.send("Speak at length");
  await bubble(user).getByRole("button", { name: en.pauseVoice }).click();
  await bubble(user).getByRole("button", { name: en.playVoice }).waitFor();
  const stood = await position(user);
  await user.settled();
  expect(await position(user)).toBe(stood);
  await page.reload();
  // Only new audio plays automatically.
  await bubble(user).getByRole("button", { name: en.playVoice }).waitFor();
  const slider = bubble(user).getByRole("slider", { name: en.voicePosition });
  await slider.focus();
  // Not to the end: there it would stop and reset.
  for (let times = 0; times < 2; times += 1) await page.keyboard.press("PageUp");
  await expect.poll(() => position(user)).toBeGreaterThan(3);
  await bubble(user).getByRole("button", { name: en.pauseVoice }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    bubble(user).getByRole("button", { name: en.downloadVoice }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("voice.wav");
});

test("new message stops the voice, and disabled autoplay stays silent", async () => {
  const user = await fixture.user();
  await user.send("Speak at length");
  await bubble(user).getByRole("button", { name: en.pauseVoice }).waitFor();
  await user.settled();
  await user.send("Hello?");
  await bubble(user).getByRole("button", { name: en.playVoice }).waitFor();
  await user.settled();
  await bubble(user).getByRole("checkbox", { name: en.autoplayVoice }).uncheck();
  await user.send("Speak again");
  await expect.poll(() => bubble(user).count()).toBe(2);
  await user.settled();
  // There is audio to play.
  await bubble(user).last().getByRole("button", { name: en.downloadVoice }).waitFor();
  expect(await user.page.getByRole("button", { name: en.pauseVoice, exact: true }).count()).toBe(0);
});
