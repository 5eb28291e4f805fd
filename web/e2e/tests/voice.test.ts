// The sound that a model makes: heard as it comes, between the other blocks of one message. R: V1, U2, T8

import { expect, test } from "vitest";
import { en } from "../../app/src/i18n/en.ts";
import type { Visitor } from "../browser.ts";
import { House } from "../house.ts";
import { type Rule, Server } from "../server.ts";

const SPOKEN =
  "Good morning! The weather is lovely today, and so are you. Shall we go out and see the river?";

const RULES: Rule[] = [
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

test("it sounds by itself, moves the mouth, and stands between the other blocks", async () => {
  const somebody = await house.visitor({ motion: "no-preference" });
  const { page } = somebody;
  await page.locator(".avatar-figure svg").waitFor();
  await somebody.say("Speak, please");
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).waitFor();
  await expect.poll(() => position(somebody), { timeout: 60_000 }).toBeGreaterThan(0.5);
  // The mouth takes shape after shape.
  const shapes = new Set<string>();
  await expect
    .poll(
      async () => {
        shapes.add(await page.locator(".avatar-figure [data-part=mouth]").first().innerHTML());
        return shapes.size;
      },
      { timeout: 60_000, interval: 30 },
    )
    .toBeGreaterThan(8);
  await somebody.settled();
  const kinds = await page
    .locator("article .part")
    .evaluateAll((parts) => parts.map((part) => part.getAttribute("data-kind")));
  expect(kinds.filter((kind) => kind !== null)).toEqual(["text", "audio", "tool_call", "text"]);
  await expect.poll(() => bubble(somebody).innerText()).toContain(SPOKEN);
  // It outlasts the turn, and ends.
  await bubble(somebody).getByRole("button", { name: en.playVoice }).waitFor();
});

test("it is paused, sought, heard again after a reload, and saved", async () => {
  const somebody = await house.visitor();
  const { page } = somebody;
  await somebody.say("Speak, please");
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).click();
  const stood = await position(somebody);
  await somebody.settled();
  expect(await position(somebody)).toBe(stood);
  await page.reload();
  // Nothing sounds by itself that is not new.
  await bubble(somebody).getByRole("button", { name: en.playVoice }).waitFor();
  const slider = bubble(somebody).getByRole("slider", { name: en.voicePosition });
  await slider.focus();
  // Not to its end: there it is over at once, and stands at its beginning again.
  for (let times = 0; times < 4; times += 1) await page.keyboard.press("PageUp");
  await expect.poll(() => position(somebody), { timeout: 60_000 }).toBeGreaterThan(3);
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).click();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    bubble(somebody).getByRole("button", { name: en.downloadVoice }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("voice.wav");
});

test("a new message silences the voice, and who wants none hears none", async () => {
  const somebody = await house.visitor();
  await somebody.say("Speak, please");
  await bubble(somebody).getByRole("button", { name: en.pauseVoice }).waitFor();
  await somebody.settled();
  await somebody.say("Hello?");
  await bubble(somebody).getByRole("button", { name: en.playVoice }).waitFor();
  await somebody.settled();
  await bubble(somebody).getByRole("checkbox", { name: en.autoplayVoice }).uncheck();
  await somebody.say("Speak again");
  await expect.poll(() => bubble(somebody).count()).toBe(2);
  await somebody.settled();
  expect(await somebody.page.getByRole("button", { name: en.pauseVoice, exact: true }).count()).toBe(0);
});
