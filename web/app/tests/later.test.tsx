import { act, render, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { en } from "../src/i18n/en.ts";
import { language } from "../src/preferences.ts";
import { later, type Missed } from "../src/ui/later.tsx";

const GONE = new TypeError("Failed to fetch dynamically imported module");
const entry = document.createElement("script");
const reload = vi.fn();

beforeEach(() => {
  reload.mockClear();
  vi.stubGlobal("location", { ...location, reload });
  language.set("en");
  vi.stubGlobal(
    "fetch",
    async () => new Response('<script src="/assets/index-1.js"></script><div id="root">'),
  );
});

afterEach(() => {
  entry.remove();
  vi.unstubAllGlobals();
});

/** A part that fails to load until it is made available. */
function part(missed?: Missed) {
  let isThere = false;
  const fetch = vi.fn(async () => {
    if (!isThere) throw GONE;
    return { default: ({ name }: { name: string; close?: () => void }) => <p>{`the part of ${name}`}</p> };
  });
  return { Part: later(fetch, missed), fetch, come: () => (isThere = true) };
}

const tryAgain = () => screen.findByRole("button", { name: en.tryAgain });

test("part that fails to load shows an error in its place, and loads on retry", async () => {
  const { Part, fetch, come } = part();
  render(
    <>
      <p>beside it</p>
      <Part name="Ann" meanwhile={<i>meanwhile</i>} />
    </>,
  );
  expect(screen.getByText("meanwhile")).toBeInTheDocument();
  await tryAgain();
  expect(screen.getByRole("status")).toHaveTextContent(en.partFailed);
  expect(screen.getByText("beside it")).toBeInTheDocument();
  expect(screen.getByText("meanwhile"), "what stands for it stays").toBeInTheDocument();
  expect(screen.queryByRole("button", { name: en.reload })).toBeNull();
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  await userEvent.click(await tryAgain());
  expect(await screen.findByRole("button", { name: en.reload }), "the second time").toBeInTheDocument();
  expect(reload, "the server is away").not.toHaveBeenCalled();
  come();
  await userEvent.click(await tryAgain());
  expect(await screen.findByText("the part of Ann")).toBeInTheDocument();
  expect(screen.queryByText("meanwhile")).toBeNull();
  expect(fetch).toHaveBeenCalledTimes(3);
});

test("browser that caches the failure gets a new page from the server", async () => {
  const { Part } = part();
  render(<Part name="Ann" />);
  await userEvent.click(await tryAgain());
  await waitFor(() => expect(reload).toHaveBeenCalledOnce());
});

test("failed part loads when the browser is online, and when it is opened again", async () => {
  const { Part, fetch, come } = part();
  const first = render(<Part name="Ann" />);
  await tryAgain();
  act(() => void window.dispatchEvent(new Event("online")));
  await waitFor(() => expect(fetch).toHaveBeenCalledTimes(2));
  first.unmount();
  come();
  render(<Part name="Ben" />);
  expect(await screen.findByText("the part of Ben")).toBeInTheDocument();
  act(() => void window.dispatchEvent(new Event("online")));
  expect(fetch, "a loaded part is not requested again").toHaveBeenCalledTimes(3);
});

test("dialog that fails to load can be closed", async () => {
  const close = vi.fn();
  const { Part } = part("above");
  render(<Part name="Ann" close={close} />);
  await userEvent.click(await screen.findByRole("button", { name: en.close }));
  expect(close).toHaveBeenCalledOnce();
});

test("part that was never requested shows no error", async () => {
  const { Part, fetch } = part("nowhere");
  const { container } = render(<Part name="Ann" />);
  await waitFor(() => expect(fetch).toHaveBeenCalledOnce());
  await act(async () => undefined);
  expect(container).toBeEmptyDOMElement();
});

test("newer page of the server is offered as the remedy", async () => {
  entry.type = "module";
  // Only its address is checked: nothing is loaded here.
  entry.setAttribute("src", "/assets/index-0.js");
  document.head.append(entry);
  const { Part } = part();
  render(<Part name="Ann" />);
  await screen.findByText(en.pageOutdated);
  expect(screen.queryByRole("button", { name: en.tryAgain })).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: en.reload }));
  expect(reload).toHaveBeenCalledOnce();
});
