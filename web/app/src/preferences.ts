// Preferences stored in this browser. Framework-free, with subscriptions.

import { Store } from "./store.ts";

export type Theme = "light" | "dark" | "system";
/** Languages by their own names. A new one needs a row here, one in `i18n/words.ts`, and its file. */
export const LANGUAGES = { en: "English", "zh-CN": "简体中文" } as const;
export type Language = keyof typeof LANGUAGES;

export const THEME_KEY = "throughline.theme";
export const LANGUAGE_KEY = "throughline.language";

/** A value stored in the browser, if the browser allows it. */
export class Preference<T extends string> extends Store<T> {
  readonly #key: string;
  readonly #read: (stored: string | null) => T;

  constructor(key: string, read: (stored: string | null) => T) {
    super(read(stored(key)));
    this.#key = key;
    this.#read = read;
    globalThis.addEventListener?.("storage", (event) => {
      if (event.key === key) this.#take(read(event.newValue));
    });
  }

  readonly set = (value: T): void => {
    try {
      localStorage.setItem(this.#key, value);
    } catch {
      // Without storage the value is kept for this page.
    }
    this.#take(this.#read(value));
  };

  /** Sets the value of a form control; an invalid one becomes the default. */
  readonly choose = (value: string): void => this.set(this.#read(value));

  #take(value: T): void {
    if (value !== this.state) this.replace(value);
  }
}

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export const theme = new Preference<Theme>(THEME_KEY, (value) =>
  value === "light" || value === "dark" ? value : "system",
);

const primary = (tag: string): string | undefined => tag.toLowerCase().split("-")[0];

/** The nearest language of the page: `zh-TW` gets `zh-CN`, an unsupported one English. */
export function languageFor(tag: string): Language {
  const all = Object.keys(LANGUAGES) as Language[];
  return all.find((one) => one === tag) ?? all.find((one) => primary(one) === primary(tag)) ?? "en";
}

export const language = new Preference<Language>(LANGUAGE_KEY, (value) =>
  languageFor(value ?? globalThis.navigator?.language ?? "en"),
);

/** Announcements of a streaming message for screen readers. */
export type Announce = "sentences" | "end" | "off";

export const announcements = new Preference<Announce>("throughline.announce", (value) =>
  value === "end" || value === "off" ? value : "sentences",
);

/** Whether the avatar is enabled in this browser. */
export type AvatarShown = "shown" | "hidden";

export const avatarShown = new Preference<AvatarShown>("throughline.avatar", (value) =>
  value === "hidden" ? value : "shown",
);

/** Position of the avatar's bubble on a narrow screen: `x y`, each from 0 (left, top) to 1; empty: over the composer. */
export const bubblePosition = new Preference<string>("throughline.bubble", (value) =>
  value !== null && /^(?:0(?:\.\d+)?|1(?:\.0+)?) (?:0(?:\.\d+)?|1(?:\.0+)?)$/.test(value) ? value : "",
);

/** Whether the list of conversations is shown next to the chat, if there is room. */
export type ConversationsShown = "shown" | "hidden";

export const conversationsShown = new Preference<ConversationsShown>("throughline.conversations", (value) =>
  value === "hidden" ? value : "shown",
);

/** Whether this browser shows notifications of ended turns and open approvals. */
export type NoticesWanted = "on" | "off";

export const noticesWanted = new Preference<NoticesWanted>("throughline.notices", (value) =>
  value === "on" ? value : "off",
);

/** Agent of this browser; empty: the server's default. */
export const answering = new Preference<string>("throughline.agent", (value) => value ?? "");

/** Late frames of this browser while answers streamed, and the watched time in ms: `12/34500`. */
export const frames = new Preference<string>("throughline.frames", (value) => value ?? "0/0");

/** Applies the preferences to the document; `first-paint.js` does so before the first paint. */
export function applyPreferences(root: HTMLElement): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (): void => {
    const isDark = theme.get() === "dark" || (theme.get() === "system" && dark.matches);
    root.dataset.theme = isDark ? "dark" : "light";
    root.lang = language.get();
  };
  apply();
  dark.addEventListener("change", apply);
  theme.subscribe(apply);
  language.subscribe(apply);
}
