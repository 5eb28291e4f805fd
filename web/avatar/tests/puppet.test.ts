// @vitest-environment jsdom
import { expect, test } from "vitest";
import { PUPPET, Puppet } from "../src/index.ts";
import { FakeClock } from "./clock.ts";

async function shown({ isReduced = false } = {}) {
  const clock = new FakeClock();
  const host = document.createElement("div");
  const leave = new AbortController();
  const puppet = new Puppet({ clock, random: () => 0.5, isReduced: () => isReduced });
  const info = await puppet.load({ kind: "puppet" }, host, leave.signal);
  return { clock, host, leave, puppet, info, picture: () => host.querySelector("svg")?.outerHTML ?? "" };
}

test("every expression is a different picture", async () => {
  const { puppet, info, picture } = await shown({ isReduced: true });
  const pictures = info.expressions.map((name) => {
    expect(puppet.expression(name)).toEqual({ kind: "ok" });
    return picture();
  });
  expect(new Set(pictures).size).toBe(info.expressions.length);
});

test("every motion moves the puppet and returns to the same pose", async () => {
  for (const [group, count] of Object.entries(PUPPET.motions)) {
    for (let index = 0; index < count; index += 1) {
      const { puppet, clock, picture } = await shown({ isReduced: true });
      const before = picture();
      expect(puppet.motion(group, index)).toEqual({ kind: "ok" });
      expect(picture(), `${group} ${index}`).not.toBe(before);
      clock.pass(5_000);
      expect(picture(), `${group} ${index}`).toBe(before);
    }
  }
});

test("feet stay on the ground in every motion", async () => {
  for (const [group, count] of Object.entries(PUPPET.motions)) {
    for (let index = 0; index < count; index += 1) {
      const { puppet, clock, host } = await shown();
      puppet.motion(group, index);
      for (let ms = 0; ms < 4_000; ms += 100) {
        clock.pass(100);
        const moved = host.querySelector("[data-part=legs]")?.getAttribute("transform") ?? "";
        const [x = Number.NaN, y = Number.NaN] = moved.match(/-?[\d.]+/g)?.map(Number) ?? [];
        expect(y, `${group} ${index} below the ground`).toBeLessThanOrEqual(0);
        expect(Math.abs(x), `${group} ${index} aside`).toBeLessThan(10);
      }
    }
  }
});

test("look turns the eyes, at once with reduced motion, and back to the viewer", async () => {
  const still = await shown({ isReduced: true });
  const before = still.picture();
  still.puppet.look(-1, 0.5);
  expect(still.picture()).not.toBe(before);
  still.puppet.look(0, 0);
  expect(still.picture()).toBe(before);
  still.puppet.look(-9, 9);
  const farthest = still.picture();
  still.puppet.look(-1, 1);
  expect(still.picture(), "no farther than to the side").toBe(farthest);
});

test("unknown name returns the known ones", async () => {
  const { puppet } = await shown();
  expect(puppet.expression("F99")).toEqual({ kind: "unknown", known: PUPPET.expressions });
  expect(puppet.motion("Fly")).toEqual({ kind: "unknown", known: Object.keys(PUPPET.motions) });
  expect(puppet.motion("Wave", 9)).toEqual({ kind: "unknown", known: ["Wave 0", "Wave 1"] });
});

test("next motion waits, and a newer one replaces it", async () => {
  const { puppet, clock, picture } = await shown({ isReduced: true });
  const of = (group: string): string => {
    puppet.motion(group, 0);
    const seen = picture();
    clock.pass(5_000);
    return seen;
  };
  const [rest, nod, wave] = [picture(), of("Nod"), of("Wave")];
  puppet.motion("Nod", 0);
  puppet.motion("Dance", 0);
  puppet.motion("Wave", 0);
  expect(picture()).toBe(nod);
  clock.pass(1_150);
  expect(picture()).toBe(wave);
  clock.pass(2_100);
  expect(picture()).toBe(rest);
});

test("puppet blinks by itself", async () => {
  const { clock, host } = await shown();
  const svg = host.querySelector("svg");
  let blinks = 0;
  let isShut = false;
  for (let frame = 0; frame < 600; frame += 1) {
    clock.pass(16);
    const now = svg?.querySelector('[clip-path][opacity="0"]') !== null;
    if (now && !isShut) blinks += 1;
    isShut = now;
  }
  expect(blinks).toBeGreaterThan(1);
  expect(blinks).toBeLessThan(6);
});

test("voice opens the mouth, and silence closes it", async () => {
  const { puppet, clock, picture } = await shown();
  clock.pass(500);
  expect(picture()).not.toContain('fill="#a3353f"');
  for (let at = 0; at < 20; at += 1) {
    puppet.speak(0.9);
    clock.pass(16);
  }
  expect(picture()).toContain('fill="#a3353f"');
  clock.pass(1_000);
  expect(picture()).not.toContain('fill="#a3353f"');
});

test("inactive puppet draws no frames, and still shows expressions", async () => {
  const { puppet, clock, picture } = await shown();
  clock.pass(100);
  puppet.setActive(false);
  expect(clock.isDrawing).toBe(false);
  const before = picture();
  puppet.expression("laugh");
  expect(picture()).not.toBe(before);
  puppet.setActive(true);
  expect(clock.isDrawing).toBe(true);
});

test("reduced motion shows still pictures", async () => {
  const { puppet, clock, picture } = await shown({ isReduced: true });
  puppet.expression("smile");
  const before = picture();
  clock.pass(10_000);
  puppet.speak(1);
  clock.pass(1_000);
  expect(picture()).toBe(before);
  expect(clock.drawn).toBe(0);
});

test("dispose removes the puppet", async () => {
  const { leave, host, clock } = await shown();
  leave.abort();
  expect(host.childElementCount).toBe(0);
  expect(clock.isDrawing).toBe(false);
  clock.pass(100);
});
