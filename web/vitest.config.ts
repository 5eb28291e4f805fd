import { defineConfig } from "vitest/config";

// A limit for hanging tests, not for slow ones: the machine may be busy.
const testTimeout = 60_000;

// One run for all packages. `client/tests` is not included: those tests run against a server, with Node's own runner.
export default defineConfig({
  test: {
    // By default one processor stays idle.
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
