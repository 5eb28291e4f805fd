import { readFileSync } from "node:fs";
import { act, render, renderHook, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { useMenuWords } from "../src/chat/composer/menu-words.ts";
import type { ViewWords } from "../src/i18n/views.ts";
import { takeWords, wordsOf } from "../src/i18n/words.ts";
import {
  applyPreferences,
  LANGUAGE_KEY,
  language,
  languageFor,
  THEME_KEY,
  theme,
} from "../src/preferences.ts";
import { SignedIn } from "../src/session/context.tsx";
import { Session } from "../src/session/session.ts";
import { ErrorBoundary } from "../src/shell/error-boundary.tsx";
import { Shell } from "../src/shell/shell.tsx";

beforeEach(() => {
  // jsdom has no media queries.
  vi.stubGlobal("matchMedia", (query: string) =>
    Object.assign(new EventTarget(), { media: query, matches: false, onchange: null }),
  );
  vi.stubGlobal("fetch", async () => Response.json({ items: [] }));
  theme.set("system");
  language.set("en");
});

describe("theme and language", () => {
  test("choice applies at once, everywhere, and is stored", async () => {
    applyPreferences(document.documentElement);
    const session = new Session();
    await session.enter();
    render(
      <SignedIn session={session}>
        <Shell />
      </SignedIn>,
    );
    await userEvent.selectOptions(await screen.findByLabelText("Theme"), "dark");
    expect(document.documentElement.dataset.theme).toBe("dark");
    expect(localStorage.getItem(THEME_KEY)).toBe("dark");
    await userEvent.selectOptions(screen.getByLabelText("Language"), "zh-CN");
    await waitFor(() => expect(screen.getByRole("navigation", { name: "主导航" })).toBeInTheDocument());
    expect(document.documentElement.lang).toBe("zh-CN");
    expect(localStorage.getItem(LANGUAGE_KEY)).toBe("zh-CN");
  });

  test("first-paint script chooses the same as the page", () => {
    const firstPaint = readFileSync("app/public/first-paint.js", "utf8");
    const root = document.documentElement;
    for (const [chosenTheme, chosenLanguage] of [
      ["dark", "zh-CN"],
      ["light", "en"],
      ["system", "zh-CN"],
    ] as const) {
      theme.set(chosenTheme);
      language.set(chosenLanguage);
      applyPreferences(root);
      const expected = [root.dataset.theme, root.lang];
      root.removeAttribute("data-theme");
      root.removeAttribute("lang");
      new Function(firstPaint)();
      expect([root.dataset.theme, root.lang]).toEqual(expected);
    }
  });
});

describe("languages", () => {
  test.each([
    ["en", "en"],
    ["en-GB", "en"],
    ["zh-CN", "zh-CN"],
    ["zh-Hant-TW", "zh-CN"],
    ["ZH", "zh-CN"],
    ["fr-CA", "en"],
    ["", "en"],
  ])("%o gets the language %s", (tag, expected) => expect(languageFor(tag)).toBe(expected));

  test("language in one file has the texts of every view", () => {
    language.set("zh-CN");
    const { result } = renderHook(() => useMenuWords());
    expect(result.current.commands).toBe("命令和提示词");
    const menu = { ...result.current, commands: "Befehle" };
    act(() => takeWords("zh-CN", { words: wordsOf("zh-CN"), views: { menu } as ViewWords }));
    expect(result.current.commands).toBe("Befehle");
    act(() => takeWords("zh-CN", { words: wordsOf("zh-CN") }));
    expect(result.current.commands).toBe("命令和提示词");
  });
});

describe("view that fails to render", () => {
  test("error has a remedy, and the rest of the page stays", async () => {
    // React logs errors that a boundary catches.
    const console_ = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const reload = vi.fn();
    vi.stubGlobal("location", { ...location, reload });
    const Broken = (): never => {
      throw new TypeError("it has no length");
    };
    render(
      <>
        <p>beside it</p>
        <ErrorBoundary>
          <Broken />
        </ErrorBoundary>
      </>,
    );
    expect(await screen.findByRole("alert")).toHaveTextContent("it has no length");
    expect(screen.getByText("beside it")).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "Reload" }));
    expect(reload).toHaveBeenCalledOnce();
    console_.mockRestore();
    vi.unstubAllGlobals();
  });
});
