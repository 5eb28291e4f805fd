// `cargo xtask pictures`: screenshots of every scene, in both languages and themes, to docs/pictures. Each sheet shows a scene four
// times; the first argument names another folder, further ones select scenes.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { indexedPng } from "../../avatar/indexed-png.mjs";
import { BrowserUser, closeBrowser } from "../browser.ts";
import { SCENES, type Scene, SceneUser } from "../scenes/scenes.ts";
import { type Language, Stage } from "../scenes/stage.ts";

const [given, ...only] = process.argv.slice(3);
const folder = resolve(given ?? join(import.meta.dirname, "../../../docs/pictures"));
mkdirSync(folder, { recursive: true });

/** English by day, Chinese by night, and the other way round. */
const VARIANTS = [
  ["en", "light"],
  ["en", "dark"],
  ["zh-CN", "light"],
  ["zh-CN", "dark"],
] as const;
type Theme = (typeof VARIANTS)[number][1];
type Taken = { language: Language; theme: Theme; png: Buffer };

/** The picture at the top of the README, in full size. */
const OPENS = { scene: "chat", language: "en", theme: "light", file: "page" };
/** Duration of the avatar's greeting. */
const GREETING_MS = 2_500;
/** Scale of a picture in a sheet. */
const SCALE = 0.5;

const stage = await Stage.build();
try {
  const wanted = SCENES.filter(({ name, isPlain }) =>
    only.length > 0 ? only.includes(name) : isPlain !== true,
  );
  const taken = new Map<Scene, Taken[]>(wanted.map((scene) => [scene, []]));
  for (const language of ["en", "zh-CN"] as const) await tour(language, taken);
  await develop(taken);
} finally {
  await closeBrowser();
  await stage.strike();
}

/** Takes all scenes in one language. */
async function tour(language: Language, taken: Map<Scene, Taken[]>): Promise<void> {
  const user = await BrowserUser.open({ locale: language === "en" ? "en-GB" : "zh-CN" });
  try {
    for (const [scene, pictures] of taken) {
      await user.openPath(stage.server.url, await stage.server.key(), scene.path, scene.size);
      await scene.arrive(new SceneUser(user, language));
      await stand(user);
      // No element is hovered, and transitions have ended.
      await user.page.mouse.move(0, 0);
      for (const theme of ["light", "dark"] as const) {
        await user.inTheme(theme);
        await user.page.waitForTimeout(300);
        pictures.push({
          language,
          theme,
          png: await user.page.screenshot({ caret: "hide", animations: "disabled" }),
        });
      }
      console.error(`  ${scene.name}, ${language}`);
    }
  } finally {
    await user.close();
  }
}

/** Waits until the avatar's greeting has ended. */
async function stand({ page }: BrowserUser): Promise<void> {
  await page.waitForTimeout(page.url().includes("/history") ? 0 : GREETING_MS);
}

/** Writes sheets with few colors, so that they are small. */
async function develop(taken: Map<Scene, Taken[]>): Promise<void> {
  const lab = await BrowserUser.open();
  let bytes = 0;
  const keep = (name: string, png: Uint8Array): void => {
    const file = join(folder, `${name}.png`);
    writeFileSync(file, png);
    bytes += readFileSync(file).length;
  };
  try {
    for (const [{ name }, pictures] of taken) {
      const ordered = VARIANTS.flatMap(
        ([language, theme]) =>
          pictures.find((one) => one.language === language && one.theme === theme)?.png ?? [],
      );
      keep(name, await sheet(lab, ordered, SCALE));
      if (name !== OPENS.scene) continue;
      const first = pictures.find(
        ({ language, theme }) => language === OPENS.language && theme === OPENS.theme,
      );
      if (first !== undefined) keep(OPENS.file, await sheet(lab, [first.png], 1));
    }
  } finally {
    await lab.close();
  }
  console.error(`  ${taken.size} sheets, ${Math.round(bytes / 1_000)} kB, in ${folder}`);
}

/** Arranges pictures in rows of two. */
async function sheet(lab: BrowserUser, pngs: readonly Buffer[], scale: number): Promise<Uint8Array> {
  const encoded = pngs.map((png) => png.toString("base64"));
  const { width, height, data } = await lab.page.evaluate(
    async ({ encoded, scale }) => {
      const bitmaps = await Promise.all(
        encoded.map((png) => {
          const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
          return createImageBitmap(new Blob([bytes], { type: "image/png" }));
        }),
      );
      const gap = bitmaps.length > 1 ? 8 : 0;
      const columns = Math.min(2, bitmaps.length);
      const [wide, high] = [
        Math.round((bitmaps[0]?.width ?? 0) * scale),
        Math.round((bitmaps[0]?.height ?? 0) * scale),
      ];
      const rows = Math.ceil(bitmaps.length / columns);
      const canvas = new OffscreenCanvas(columns * (wide + gap) - gap, rows * (high + gap) - gap);
      const context = canvas.getContext("2d");
      if (context === null) throw new Error("nothing can be drawn");
      context.fillStyle = "#8a867c";
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.imageSmoothingQuality = "high";
      for (const [at, bitmap] of bitmaps.entries()) {
        context.drawImage(
          bitmap,
          (at % columns) * (wide + gap),
          Math.floor(at / columns) * (high + gap),
          wide,
          high,
        );
      }
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      let text = "";
      for (let at = 0; at < data.length; at += 8_192)
        text += String.fromCharCode(...data.subarray(at, at + 8_192));
      return { width: canvas.width, height: canvas.height, data: btoa(text) };
    },
    { encoded, scale },
  );
  return indexedPng(width, height, new Uint8Array(Buffer.from(data, "base64")));
}
