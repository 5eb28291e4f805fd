// Draws a sheet of the puppet: every expression by day, some motions by night, to docs/pictures/avatar.png or the path in the first
// argument: `npm run avatar-sheet`

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";
import { build } from "vite";
import { indexedPng } from "./indexed-png.mjs";

const web = resolve(import.meta.dirname, "..");
const target = resolve(process.argv[2] ?? join(web, "../docs/pictures/avatar.png"));
/** Motions at their most expressive moment, each with a matching face. */
const MOTIONS = [
  ["Wave", 0, "smile"],
  ["Wave", 1, "excited"],
  ["Dance", 0, "laugh"],
  ["Jump", 0, "excited"],
  ["Bow", 0, "neutral"],
  ["Shake", 0, "angry"],
];

const built = await build({
  root: web,
  configFile: false,
  logLevel: "error",
  build: {
    write: false,
    lib: { entry: join(web, "avatar/src/index.ts"), formats: ["iife"], name: "avatar" },
  },
});
const { code } = [built].flat()[0].output[0];

const folder = await mkdtemp(join(tmpdir(), "throughline-sheet-"));
const browser = await chromium.launchPersistentContext(folder, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  viewport: { width: 780, height: 480 },
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
try {
  const page = browser.pages()[0] ?? (await browser.newPage());
  await page.setContent(`<style>
    body { margin: 0; font: 11px system-ui, sans-serif }
    section { display: grid; grid-template-columns: repeat(6, 1fr); padding: 4px 8px }
    figure { margin: 0; text-align: center; height: 152px }
    figure > div { height: 134px }
    .light { background: #fbfaf7; color: #655f54 } .dark { background: #14151a; color: #a5a29a }
  </style>`);
  await page.addScriptTag({ content: code });
  await page.evaluate(async (motions) => {
    const sheet = async (theme, shown) => {
      const section = document.createElement("section");
      section.className = theme;
      document.body.append(section);
      for (const [face, group, index] of shown) {
        const [figure, host] = [document.createElement("figure"), document.createElement("div")];
        figure.append(host, group === undefined ? face : `${group} ${index}`);
        section.append(figure);
        const puppet = new window.avatar.Puppet({ isReduced: () => true });
        await puppet.load({ kind: "puppet" }, host, new AbortController().signal);
        puppet.expression(face);
        if (group !== undefined) puppet.motion(group, index);
      }
    };
    const faces = window.avatar.PUPPET.expressions.map((face) => [face]);
    const moves = motions.map(([group, index, face]) => [face, group, index]);
    await sheet("light", faces);
    await sheet("dark", moves);
  }, MOTIONS);
  const screen = (await page.screenshot()).toString("base64");
  const { width, height, data } = await page.evaluate(async (png) => {
    const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { width, height, data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    return { width, height, data: [...data] };
  }, screen);
  await writeFile(target, indexedPng(width, height, Uint8Array.from(data)));
} finally {
  await browser.close();
  await rm(folder, { recursive: true });
}
