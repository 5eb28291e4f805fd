// axe finds nothing (all of its rules) in any view and state, in either language and theme. The rows are in scenes/scenes.ts.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeBrowser, Visitor } from "../browser.ts";
import { Guest, SCENES } from "../scenes/scenes.ts";
import { Stage } from "../scenes/stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.build();
});
afterAll(async () => {
  await closeBrowser();
  await stage.strike();
});

// R: U6
describe.each(["en", "zh-CN"] as const)("axe has nothing to say, %s", (language) => {
  let visitor: Visitor;
  beforeAll(async () => {
    visitor = await Visitor.come({ locale: language === "en" ? "en-GB" : "zh-CN" });
  });
  afterAll(() => visitor.leave());

  test.each(SCENES.map((scene) => [scene.name, scene] as const))("%s", async (_, { path, size, arrive }) => {
    await visitor.enter(stage.server.url, await stage.server.key(), path, size);
    await arrive(new Guest(visitor, language));
    for (const colorScheme of ["light", "dark"] as const) {
      await visitor.inTheme(colorScheme);
      expect(await visitor.violations(), colorScheme).toEqual([]);
    }
    expect(visitor.complaints).toEqual([]);
  });
});
