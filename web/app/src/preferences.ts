// What this browser remembers of its user. Framework-free; whoever wants to know of changes subscribes.

export type Theme = "light" | "dark" | "system";
/** Each by its own name. A further one has a row here, one in `i18n/words.ts`, and its file. */
export const LANGUAGES = { en: "English", "zh-CN": "简体中文" } as const;
export type Language = keyof typeof LANGUAGES;

export const THEME_KEY = "throughline.theme";
export const LANGUAGE_KEY = "throughline.language";

type Listener = () => void;

/** A value that is kept in the browser, where the browser lets us. */
export class Preference<T extends string> {
  readonly #key: string;
  readonly #read: (stored: string | null) => T;
  readonly #listeners = new Set<Listener>();
  #value: T;

  constructor(key: string, read: (stored: string | null) => T) {
    this.#key = key;
    this.#read = read;
    this.#value = read(stored(key));
    globalThis.addEventListener?.("storage", (event) => {
      if (event.key === key) this.#take(read(event.newValue));
    });
  }

  readonly get = (): T => this.#value;

  readonly set = (value: T): void => {
    try {
      localStorage.setItem(this.#key, value);
    } catch {
      // A browser that keeps nothing still shows what was chosen.
    }
    this.#take(this.#read(value));
  };

  /** Takes what a form control says; what is no choice becomes the default. */
  readonly choose = (value: string): void => this.set(this.#read(value));

  readonly subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #take(value: T): void {
    if (value === this.#value) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
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

/** The language of the page that is nearest: `zh-TW` is read in `zh-CN`, what there is none for in English. */
export function languageFor(tag: string): Language {
  const all = Object.keys(LANGUAGES) as Language[];
  return all.find((one) => one === tag) ?? all.find((one) => primary(one) === primary(tag)) ?? "en";
}

export const language = new Preference<Language>(LANGUAGE_KEY, (value) =>
  languageFor(value ?? globalThis.navigator?.language ?? "en"),
);

/** What a screen reader is told of a message that streams. */
export type Announce = "sentences" | "end" | "off";

export const announcements = new Preference<Announce>("throughline.announce", (value) =>
  value === "end" || value === "off" ? value : "sentences",
);

/** Whether the avatar takes part in this browser. */
export type AvatarShown = "shown" | "hidden";

export const avatarShown = new Preference<AvatarShown>("throughline.avatar", (value) =>
  value === "hidden" ? value : "shown",
);

/** Where its bubble was moved to on a narrow screen: `x y`, each from 0 (left, top) to 1; empty: over the composer. */
export const bubblePlace = new Preference<string>("throughline.bubble", (value) =>
  value !== null && /^(?:0(?:\.\d+)?|1(?:\.0+)?) (?:0(?:\.\d+)?|1(?:\.0+)?)$/.test(value) ? value : "",
);

/** Whether conversations are listed beside the chat, where there is room. */
export type ConversationsShown = "shown" | "hidden";

export const conversationsShown = new Preference<ConversationsShown>("throughline.conversations", (value) =>
  value === "hidden" ? value : "shown",
);

/** Whether this browser tells of turns that end or ask while nobody looks. */
export type NoticesWanted = "on" | "off";

export const noticesWanted = new Preference<NoticesWanted>("throughline.notices", (value) =>
  value === "on" ? value : "off",
);

/** The agent that answers in this browser; empty: the one that the server names. */
export const answering = new Preference<string>("throughline.agent", (value) => value ?? "");

/** Frames that this browser has drawn late while answers came, and how long it was watched for them: `12/34500`, in ms. */
export const frames = new Preference<string>("throughline.frames", (value) => value ?? "0/0");

/** Keeps the document as the choices say; `first-paint.js` did so before the first paint. */
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
