// Accessibility checks of all scenes. Each language has its own file of tests, so that they run in parallel.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeBrowser, Visitor } from "../browser.ts";
import { Guest, SCENES } from "./scenes.ts";
import { type Language, Stage } from "./stage.ts";

/** Checks that axe (all rules) reports nothing for any scene, in both themes. */
export function checkEveryScene(language: Language): void {
  describe(`axe has nothing to say, ${language}`, () => {
    let stage: Stage;
    let visitor: Visitor;
    beforeAll(async () => {
      stage = await Stage.build();
      visitor = await Visitor.come({ locale: language === "en" ? "en-GB" : "zh-CN" });
    });
    afterAll(async () => {
      await visitor.leave();
      await closeBrowser();
      await stage.strike();
    });

    test.each(SCENES.map((scene) => [scene.name, scene] as const))(
      "%s",
      async (_, { path, size, arrive }) => {
        await visitor.enter(stage.server.url, await stage.server.key(), path, size);
        await arrive(new Guest(visitor, language));
        for (const colorScheme of ["light", "dark"] as const) {
          await visitor.inTheme(colorScheme);
          expect(await visitor.violations(), colorScheme).toEqual([]);
        }
        expect(visitor.complaints).toEqual([]);
      },
    );
  });
}
