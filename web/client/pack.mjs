// Builds the package for publication: `npm run pack -- FOLDER` writes JavaScript, types, README and package.json there.
// Within this repository its sources are imported directly.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../..");
const folder = process.argv[2];
if (folder === undefined) throw new Error("Name the folder to write to: npm run pack -- FOLDER");
const out = resolve(folder);

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
execFileSync("tsc", ["-p", "tsconfig.build.json", "--outDir", join(out, "dist")], {
  cwd: here,
  stdio: "inherit",
});

// The compiler leaves names of sources in declarations; in the package they name no file.
for (const file of readdirSync(join(out, "dist"), { recursive: true, encoding: "utf8" })) {
  if (!file.endsWith(".d.ts")) continue;
  const path = join(out, "dist", file);
  writeFileSync(path, readFileSync(path, "utf8").replace(/(["']\.{1,2}\/[^"']+)\.ts(["'])/g, "$1.js$2"));
}

const source = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const entry = (path) => ({ types: `./dist/${path}.d.ts`, default: `./dist/${path}.js` });
const built = (path) => entry(path.replace(/^\.\//, "").replace(/\.ts$/, ""));
const { private: _, scripts: _scripts, exports, ...kept } = source;
const published = {
  ...kept,
  repository: {
    type: "git",
    url: "git+https://github.com/throughline/throughline.git",
    directory: "web/client",
  },
  engines: { node: ">=20" },
  files: ["dist", "LICENSE-APACHE", "LICENSE-MIT"],
  exports: Object.fromEntries(Object.entries(exports).map(([name, path]) => [name, built(path)])),
};
writeFileSync(join(out, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
copyFileSync(join(here, "README.md"), join(out, "README.md"));
for (const license of ["LICENSE-MIT", "LICENSE-APACHE"])
  copyFileSync(join(root, license), join(out, license));
