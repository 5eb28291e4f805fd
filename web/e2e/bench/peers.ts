// Other chat components with the same stream, each in a page of its own, built without our plugins.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export interface Peers {
  /** Folder with the pages of the peers. */
  folder: string;
  found: { name: string; version: string }[];
}

/** Package, and the file in `peers/src` that renders a message with it. */
const PEERS = [
  { name: "streamdown", packages: ["streamdown"] },
  { name: "assistant-ui", packages: ["@assistant-ui/react", "@assistant-ui/react-markdown"] },
];

/** Installs and builds the peers in this folder; `undefined`: not possible here. */
export function peers(folder: string): Peers | undefined {
  const sources = join(import.meta.dirname, "peers");
  const client = resolve(import.meta.dirname, "../../client/src/index.ts");
  const run = (command: string, words: string[], env: Record<string, string> = {}): void => {
    execFileSync(command, words, { cwd: folder, stdio: ["ignore", 2, 2], env: { ...process.env, ...env } });
  };
  try {
    mkdirSync(folder, { recursive: true });
    cpSync(sources, folder, { recursive: true });
    const wanted = readFileSync(join(sources, "package.json"), "utf8");
    const done = join(folder, "node_modules/.installed-from");
    if (!existsSync(done) || readFileSync(done, "utf8") !== wanted) {
      run("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"]);
      cpSync(join(sources, "package.json"), done);
    }
    for (const { name } of PEERS) run("node", ["build.mjs", name], { CLIENT: client });
  } catch (error) {
    console.error(`  skipped: the peers cannot be installed or built (${String(error).split("\n")[0]})`);
    return undefined;
  }
  const versionOf = (name: string): string => {
    const { version }: { version: string } = JSON.parse(
      readFileSync(join(folder, "node_modules", name, "package.json"), "utf8"),
    );
    return `${name} ${version}`;
  };
  return {
    folder: join(folder, "dist"),
    found: PEERS.map(({ name, packages }) => ({ name, version: packages.map(versionOf).join(", ") })),
  };
}
