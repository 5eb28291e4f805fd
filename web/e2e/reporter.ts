// Writes a line for each finished test, which `cargo xtask test` counts (xtask/src/test/report.rs).

import type { TestError } from "vitest";
import type { Reporter, TestCase } from "vitest/node";

// Limit of a failure's message and stack.
const OUTPUT_LINES_MAX = 60;

export default class LineReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    const { flaky, duration } = test.diagnostic() ?? { flaky: false, duration: 0 };
    const name = `${test.module.relativeModuleId} > ${test.fullName}`;
    const outcome = state === "passed" && flaky ? "flaky" : state;
    const lines = (errors ?? []).flatMap(outputOf).slice(0, OUTPUT_LINES_MAX);
    const why = outcome === "failed" && lines[0] !== undefined ? `: ${lines[0]}` : "";
    const timed = state === "skipped" ? outcome : `${outcome} in ${Math.round(duration)} ms`;
    // The output of a flaky test stays in the log.
    const head = outcome === "flaky" ? "attempt 1" : "output";
    // On separate lines, even after an unfinished one.
    const all = [`e2e ${timed}: ${name}${why}`, ...lines.map((line) => `e2e ${head}: ${line}`)];
    process.stdout.write(`${all.join("\n")}\n`);
  }
}

function outputOf(error: TestError): string[] {
  const stack = error.stacks?.map(({ file, line }) => `    at ${file}:${line}`) ?? [];
  return [...error.message.split("\n"), ...(error.diff?.split("\n") ?? []), ...stack];
}
