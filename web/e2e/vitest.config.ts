import { defineConfig } from "vitest/config";

// A real browser against the real server; each file has a server of its own.
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "node",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two browsers at once would measure each other.
    fileParallelism: false,
  },
});
