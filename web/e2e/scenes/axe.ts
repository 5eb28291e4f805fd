// Accessibility checks of all scenes. Each language has its own file of tests, so that they run in parallel.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BrowserUser, closeBrowser } from "../browser.ts";
import { SCENES, SceneUser } from "./scenes.ts";
import { type Language, Stage } from "./stage.ts";

/** Checks that axe (all rules) reports nothing for any scene, in both themes. */
export function checkEveryScene(language: Language): void {
  describe(`axe finds no violations, ${language}`, () => {
    let stage: Stage;
    let user: BrowserUser;
    beforeAll(async () => {
      stage = await Stage.build();
      user = await BrowserUser.open({ locale: language === "en" ? "en-GB" : "zh-CN" });
    });
    afterAll(async () => {
      await user.close();
      await closeBrowser();
      await stage.strike();
    });

    test.each(SCENES.map((scene) => [scene.name, scene] as const))(
      "%s",
      async (_, { path, size, arrive }) => {
        await user.openPath(stage.server.url, await stage.server.key(), path, size);
        await arrive(new SceneUser(user, language));
        for (const colorScheme of ["light", "dark"] as const) {
          await user.inTheme(colorScheme);
          expect(await user.violations(), colorScheme).toEqual([]);
        }
        expect(user.errors).toEqual([]);
      },
    );
  });
}
