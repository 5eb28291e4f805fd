import { Settings2 } from "lucide-react";
import { type ReactNode, useId, useSyncExternalStore } from "react";
import { openModels } from "../connect/open.ts";
import { useWords } from "../i18n/use.ts";
import {
  type Announce,
  type AvatarShown,
  announcements,
  avatarShown,
  type Language,
  language,
  type Preference,
  type Theme,
  theme,
} from "../preferences.ts";

/** Theme and language, in a popover of the rail. */
export function Settings() {
  const words = useWords();
  const id = useId();
  return (
    <>
      <button
        type="button"
        popoverTarget={id}
        aria-label={words.settings}
        title={words.settings}
        className="grid size-10.5 place-items-center rounded-[11px] text-muted hover:text-text min-[720px]:mt-auto"
      >
        <Settings2 aria-hidden size={20} strokeWidth={1.8} />
      </button>
      <div
        id={id}
        popover="auto"
        className="fixed inset-auto bottom-16 m-0 w-64 rounded-card border border-line bg-surface p-4 text-text shadow-card max-[719px]:right-3 min-[720px]:bottom-4 min-[720px]:left-16"
      >
        <Choice label={words.theme} preference={theme}>
          <option value={"system" satisfies Theme}>{words.themeSystem}</option>
          <option value={"light" satisfies Theme}>{words.themeLight}</option>
          <option value={"dark" satisfies Theme}>{words.themeDark}</option>
        </Choice>
        <Choice label={words.language} preference={language}>
          <option value={"en" satisfies Language} lang="en">
            English
          </option>
          <option value={"zh-CN" satisfies Language} lang="zh-CN">
            简体中文
          </option>
        </Choice>
        <Choice label={words.announcements} preference={announcements}>
          <option value={"sentences" satisfies Announce}>{words.announceSentences}</option>
          <option value={"end" satisfies Announce}>{words.announceEnd}</option>
          <option value={"off" satisfies Announce}>{words.announceOff}</option>
        </Choice>
        <Choice label={words.avatar} preference={avatarShown}>
          <option value={"shown" satisfies AvatarShown}>{words.avatarShown}</option>
          <option value={"hidden" satisfies AvatarShown}>{words.avatarHidden}</option>
        </Choice>
        <button type="button" className="button mt-2 w-full justify-center" onClick={openModels}>
          {words.connectHow}
        </button>
        <a href="/docs" className="mt-2 block text-[13px] text-accent underline">
          {words.api}
        </a>
      </div>
    </>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  preference: Preference<T>;
  children: ReactNode;
}

function Choice<T extends string>({ label, preference, children }: ChoiceProps<T>) {
  const value = useSyncExternalStore(preference.subscribe, preference.get);
  return (
    <label className="flex items-center gap-3 py-1.5 text-[13px]">
      <span className="flex-1 text-muted">{label}</span>
      <select
        value={value}
        onChange={(event) => preference.choose(event.currentTarget.value)}
        className="rounded-control border border-line-strong bg-surface px-2 py-1"
      >
        {children}
      </select>
    </label>
  );
}
