import { act, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { useRequest } from "../src/ui/use-request.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const after = (ms: number): Promise<void> => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));

test("new wait alone sends nothing, and applies to the next request", async () => {
  const [first, second] = [vi.fn(async () => "one"), vi.fn(async () => "two")];
  const { result, rerender } = renderHook(({ ask, waitMs }) => useRequest(ask, waitMs), {
    initialProps: { ask: first, waitMs: 0 },
  });
  await after(0);
  rerender({ ask: first, waitMs: 300 });
  await after(1_000);
  expect(first).toHaveBeenCalledTimes(1);
  expect(result.current.value).toBe("one");

  rerender({ ask: second, waitMs: 300 });
  await after(299);
  expect(second).not.toHaveBeenCalled();
  expect(result.current.value, "the last answer stays until the next one is here").toBe("one");
  await after(1);
  expect(second).toHaveBeenCalledTimes(1);
  expect(result.current.value).toBe("two");
});

test("request and wait can change together", async () => {
  const [first, second] = [vi.fn(async () => "one"), vi.fn(async () => "two")];
  const { result, rerender } = renderHook(({ ask, waitMs }) => useRequest(ask, waitMs), {
    initialProps: { ask: first, waitMs: 300 },
  });
  await after(100);
  rerender({ ask: second, waitMs: 0 });
  await after(0);
  expect(first).not.toHaveBeenCalled();
  expect(result.current.value).toBe("two");
});

test("retry sends the same request again", async () => {
  const ask = vi.fn(async () => "one");
  const { result } = renderHook(() => useRequest(ask));
  await after(0);
  act(() => result.current.again());
  await after(0);
  expect(ask).toHaveBeenCalledTimes(2);
});
