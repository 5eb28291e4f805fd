// `cargo xtask bench page`: performance of the page with the real server. Each line of standard output is a row.

import { OURS } from "./figures.ts";
import { peers } from "./peers.ts";
import { prepare } from "./prepare.ts";
import { type Row, undisturbed } from "./quiet.ts";
import { big, growth, scroll, start } from "./scenarios.ts";
import { FULL, QUICK, stream } from "./streams.ts";
import { Upstream } from "./upstream.ts";

const isQuick = process.argv.includes("--quick");
/** Selects scenarios: `--only=s1,scroll`. */
const only = process.argv
  .find((word) => word.startsWith("--only="))
  ?.slice(7)
  .split(",");
const isWanted = (name: string): boolean => only === undefined || only.includes(name);

/** `--peers`: with other pages even if quick; `--no-peers`: without them. */
const isWithPeers = process.argv.includes("--peers") || !(isQuick || process.argv.includes("--no-peers"));
const others = isWithPeers ? peers(process.env.BENCH_FOLDER ?? "") : undefined;
const upstream = await Upstream.start(others?.folder ?? "");
const server = await prepare(upstream);
const tell = (row: object): void => console.log(JSON.stringify(row));
const measured = async (measure: () => Promise<Row>): Promise<void> => {
  const anew = (): Promise<Row> => {
    upstream.forget();
    return measure();
  };
  tell(await undisturbed(anew, isQuick ? 1 : undefined));
};
try {
  const subjects = [
    { name: OURS, version: "", url: server.url },
    ...(others?.found ?? []).map((peer) => ({
      ...peer,
      url: `http://${upstream.host}/${peer.name}/#server=${new URL(server.url).origin}&key=${server.key}`,
    })),
  ];
  for (const { name, version } of subjects) tell({ subject: name, scenario: "version", version });
  if (isWanted("start")) await measured(() => start(server, isQuick ? 1 : 3));
  for (const scenario of (isQuick ? QUICK : FULL).filter(({ name }) => isWanted(name))) {
    for (const { name, url } of subjects) await measured(() => stream(name, url, upstream, scenario));
  }
  if (isWanted("scroll")) await measured(() => scroll(server, isQuick ? 40 : 200));
  if (isWanted("big")) await measured(() => big(server));
  if (isWanted("growth")) await measured(() => growth(server, isQuick ? 4 : 10, isQuick ? 10 : 60));
} finally {
  await server.stop();
  upstream.stop();
}
