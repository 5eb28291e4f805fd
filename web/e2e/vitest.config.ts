import { defineConfig } from "vitest/config";

// A real browser against the real server; each file has a server of its own.
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "node",
    // Longer than anything takes, on a machine that has other things to do.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Two browsers at once would measure each other.
    fileParallelism: false,
    // A busy machine fails one of some hundred once in a while. The report names what passed only then: `(retry x1)`.
    retry: 1,
  },
});
