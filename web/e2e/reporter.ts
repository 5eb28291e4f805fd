// Writes a line for each test that has ended, which `cargo xtask test` counts (xtask/src/test/report.rs).

import type { Reporter, TestCase } from "vitest/node";

export default class LineReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result();
    const outcome = state === "passed" && test.diagnostic()?.flaky === true ? "flaky" : state;
    const why = errors?.[0]?.message.split("\n")[0];
    // On a line of its own, whatever stands in the one before.
    process.stdout.write(
      `e2e ${outcome}: ${test.module.relativeModuleId} > ${test.fullName}${why === undefined || outcome === "flaky" ? "" : `: ${why}`}\n`,
    );
  }
}
