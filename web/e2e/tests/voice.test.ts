// Audio of a model: played as it arrives, between the other blocks of one message.

import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import type { Visitor } from "../browser.ts";
import { House } from "../house.ts";
import { type Rule, Server } from "../server.ts";

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

const house = House.of(() => Server.scripted(RULES));

const bubble = ({ page }: Visitor) => page.getByRole("region", { name: en.voice });
const position = async (somebody: Visitor): Promise<number> =>
  Number(await bubble(somebody).getByRole("slider", { name: en.voicePosition }).inputValue());

/** Records the shapes of the avatar's mouth. */
async function watchMouth({ page }: Visitor): Promise<void> {
  await page.evaluate(() => {
    const shapes = new Set<string>();
    (window as unknown as { shapes: Set<string> }).shapes = shapes;
    const look = (): void => {
      shapes.add(document.querySelector(".avatar-figure [data-part=mouth]")?.innerHTML ?? "");
      requestAnimationFrame(look);
    };
    look();
  });
}

const shapes = ({ page }: Visitor): Promise<number> =>
  page.evaluate(() => (window as unknown as { shapes: Set<string> }).shapes.size);

test("it sounds by itself, moves the mouth, and stands between the other blocks", async () => {
  const somebody = await house.visitor({ motion: "no-preference" });
  const { page } = somebody;
  await page.locator(".avatar-figure svg").waitFor();
  await watchMouth(somebody);
  await somebody.say("Speak, please");
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).waitFor();
  await expect.poll(() => position(somebody)).toBeGreaterThan(0.5);
  // The mouth changes its shape repeatedly.
  await expect.poll(() => shapes(somebody)).toBeGreaterThan(8);
  await somebody.settled();
  const kinds = () =>
    page
      .locator("article .part[data-kind]")
      .evaluateAll((parts) => parts.map((part) => part.getAttribute("data-kind")));
  await expect.poll(kinds).toEqual(["text", "audio", "tool_call", "text"]);
  await expect.poll(() => bubble(somebody).innerText()).toContain(SPOKEN);
  // The audio outlasts the turn, and ends.
  await bubble(somebody).getByRole("button", { name: en.playVoice }).waitFor();
});

test("it is paused, sought, heard again after a reload, and saved", async () => {
  const somebody = await house.visitor();
  const { page } = somebody;
  await somebody.say("Speak at length");
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).click();
  await bubble(somebody).getByRole("button", { name: en.playVoice }).waitFor();
  const stood = await position(somebody);
  await somebody.settled();
  expect(await position(somebody)).toBe(stood);
  await page.reload();
  // Only new audio plays automatically.
  await bubble(somebody).getByRole("button", { name: en.playVoice }).waitFor();
  const slider = bubble(somebody).getByRole("slider", { name: en.voicePosition });
  await slider.focus();
  // Not to the end: there it would stop and reset.
  for (let times = 0; times < 2; times += 1) await page.keyboard.press("PageUp");
  await expect.poll(() => position(somebody)).toBeGreaterThan(3);
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    bubble(somebody).getByRole("button", { name: en.downloadVoice }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("voice.wav");
});

test("a new message silences the voice, and who wants none hears none", async () => {
  const somebody = await house.visitor();
  await somebody.say("Speak at length");
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).waitFor();
  await somebody.settled();
  await somebody.say("Hello?");
  await bubble(somebody).getByRole("button", { name: en.playVoice }).waitFor();
  await somebody.settled();
  await bubble(somebody).getByRole("checkbox", { name: en.autoplayVoice }).uncheck();
  await somebody.say("Speak again");
  await expect.poll(() => bubble(somebody).count()).toBe(2);
  await somebody.settled();
  // There is audio to play.
  await bubble(somebody).last().getByRole("button", { name: en.downloadVoice }).waitFor();
  expect(await somebody.page.getByRole("button", { name: en.pauseVoice, exact: true }).count()).toBe(0);
});
