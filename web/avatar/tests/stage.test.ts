import { expect, test } from "vitest";
import { type AvatarDriver, AvatarStage, type CueResult, FALL_BACK_MS, PUPPET } from "../src/index.ts";
import { FakeClock } from "./clock.ts";

class Recorder implements AvatarDriver {
  readonly done: string[] = [];
  load = async () => PUPPET;
  expression = (name: string): CueResult => this.#does(name);
  motion = (group: string, index?: number): CueResult => this.#does(`${group} ${index}`);
  look = (x: number, y: number): void => void this.#does(`looks ${x} ${y}`);
  speak = (level: number): void => void this.#does(`says ${level}`);
  setActive = (active: boolean): void => void this.#does(active ? "moves" : "holds still");
  dispose = (): void => void this.#does("leaves");

  #does(what: string): CueResult {
    this.done.push(what);
    return { kind: "ok" };
  }
}

function staged() {
  const [driver, clock] = [new Recorder(), new FakeClock()];
  return { driver, clock, stage: new AvatarStage(driver, PUPPET, clock) };
}

test("new expression replaces the previous one, and stays during the turn", () => {
  const { driver, clock, stage } = staged();
  stage.turnBegan();
  stage.expression("smile");
  stage.expression("sad");
  clock.pass(10 * FALL_BACK_MS);
  expect(driver.done).toEqual(["smile", "sad"]);
  expect(stage.get().expression).toBe("sad");
});

test("expression returns to neutral six seconds after the turn", () => {
  const { clock, stage } = staged();
  stage.turnBegan();
  stage.expression("laugh");
  stage.turnEnded();
  clock.pass(FALL_BACK_MS - 100);
  expect(stage.get().expression).toBe("laugh");
  clock.pass(200);
  expect(stage.get().expression).toBe("neutral");
});

test("next turn keeps the expression", () => {
  const { clock, stage } = staged();
  stage.turnBegan();
  stage.expression("laugh");
  stage.turnEnded();
  clock.pass(1_000);
  stage.turnBegan();
  clock.pass(2 * FALL_BACK_MS);
  expect(stage.get().expression).toBe("laugh");
});

test("pinned expression stays, and returns to neutral when unpinned", () => {
  const { clock, stage } = staged();
  stage.expression("shy");
  stage.pin(true);
  clock.pass(2 * FALL_BACK_MS);
  expect(stage.get()).toMatchObject({ expression: "shy", isPinned: true });
  stage.pin(false);
  clock.pass(FALL_BACK_MS + 100);
  expect(stage.get()).toMatchObject({ expression: "neutral", isPinned: false });
});

test("unknown name changes nothing and returns the known ones", () => {
  const { driver, stage } = staged();
  expect(stage.expression("F99")).toEqual({ kind: "unknown", known: PUPPET.expressions });
  expect(stage.motion("Fly")).toEqual({ kind: "unknown", known: Object.keys(PUPPET.motions) });
  expect(driver.done).toEqual([]);
});

test("stage is active while visible and not paused", () => {
  const { driver, stage } = staged();
  stage.pause(true);
  stage.seen(true);
  stage.pause(false);
  stage.seen(false);
  expect(driver.done).toEqual(["holds still", "holds still", "moves", "holds still"]);
});

test("subscriber is notified of every change", () => {
  const { stage } = staged();
  const shown: string[] = [];
  const leave = stage.subscribe(() => shown.push(stage.get().expression));
  stage.expression("happy");
  leave();
  stage.expression("sad");
  expect(shown).toEqual(["smile"]);
});

test("mood sets the face, but a requested expression stays", () => {
  const { driver, clock, stage } = staged();
  stage.turnBegan();
  stage.mood("thinks");
  stage.mood("thinks");
  expect(stage.get().expression).toBe("thinking");
  stage.mood("watches");
  stage.look(-1, 0.5);
  stage.look();
  expect(driver.done).toEqual(["thinking", "neutral", "looks -1 0.5", "looks 0 0"]);
  stage.expression("laugh");
  stage.mood("waits");
  expect(stage.get().expression).toBe("laugh");
  stage.turnEnded();
  stage.mood("rest");
  clock.pass(FALL_BACK_MS + 100);
  expect(stage.get().expression).toBe("neutral");
  stage.mood("waits");
  expect(stage.get().expression).toBe("smile");
  stage.pin(true);
  stage.mood("rest");
  expect(stage.get().expression, "pinned it stays").toBe("smile");
});

test("mood without an expression is neutral, and a driver without eyes does not look", () => {
  const clock = new FakeClock();
  const { look: _, ...driver } = new Recorder();
  const stage = new AvatarStage(driver, { name: "Own", expressions: ["neutral"], motions: {} }, clock);
  stage.mood("thinks");
  stage.look(1, 1);
  expect(stage.get().expression).toBe("neutral");
});
