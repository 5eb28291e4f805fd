import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

/** Deletes the previous build, except for the file that keeps the folder in the repository. */
export function emptied(): Plugin {
  let folder = "";
  return {
    name: "throughline-emptied",
    apply: "build",
    configResolved({ root, build }) {
      folder = resolve(root, build.outDir);
    },
    async buildStart() {
      await mkdir(folder, { recursive: true });
      for (const name of await readdir(folder)) {
        if (name !== ".gitignore") await rm(join(folder, name), { recursive: true });
      }
    },
  };
}

/** Other files grow when compressed, or are never sent. */
const COMPRESSED = new Set([".js", ".css", ".html", ".svg", ".json", ".webmanifest"]);

/** Writes `.br` and `.gz` next to every served file, so that the server compresses nothing. */
export function compressed(): Plugin {
  return {
    name: "throughline-compressed",
    apply: "build",
    async writeBundle({ dir }) {
      if (dir === undefined) return;
      const files = await readdir(dir, { recursive: true, withFileTypes: true });
      for (const file of files) {
        if (!file.isFile() || !COMPRESSED.has(extname(file.name))) continue;
        const path = join(file.parentPath, file.name);
        const bytes = await readFile(path);
        const br = await promisify(brotliCompress)(bytes, {
          params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
        });
        await writeFile(`${path}.br`, br);
        await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }));
      }
    },
  };
}
