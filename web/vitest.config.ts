import { defineConfig } from "vitest/config";

// Against what hangs, not against what is slow: a machine may be busy.
const testTimeout = 60_000;

// One run for all packages. `client/tests` is not among them: those tests run against a server, by Node's own runner.
export default defineConfig({
  test: {
    // By default one processor stays free for whoever edits meanwhile.
    maxWorkers: "100%",
    projects: [
      {
        test: {
          name: "packages",
          include: ["{markdown,json,avatar,visible}/tests/**/*.test.ts", "client/specs/**/*.test.ts"],
          environment: "node",
          testTimeout,
          setupFiles: ["./property-seed.ts"],
        },
      },
      {
        extends: "./app/vite.config.ts",
        test: {
          name: "views",
          root: ".",
          include: ["app/tests/**/*.test.{ts,tsx}", "client/specs/**/*.test.tsx"],
          environment: "jsdom",
          testTimeout,
          setupFiles: ["./app/tests/setup.ts", "./property-seed.ts"],
        },
      },
    ],
  },
});
