import { Settings2 } from "lucide-react";
import { type ReactNode, useId, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import {
  type Announce,
  type AvatarShown,
  announcements,
  avatarShown,
  LANGUAGES,
  language,
  type Preference,
  type Theme,
  theme,
} from "../preferences.ts";
import { Link } from "../shared/link.tsx";
import { openModels } from "../shared/open-models.ts";

/** Popover of the rail with theme and language, and a link to all settings. */
export function Settings() {
  const words = useWords();
  const id = useId();
  return (
    <>
      <button type="button" popoverTarget={id} className="rail-link min-[720px]:mt-auto">
        <Settings2 aria-hidden size={20} strokeWidth={1.8} />
        <span>{words.settings}</span>
      </button>
      <div
        id={id}
        popover="auto"
        className="fixed inset-auto bottom-16 m-0 w-64 rounded-card border border-line bg-surface p-4 text-text shadow-card max-[719px]:right-3 min-[720px]:bottom-4 min-[720px]:left-20"
      >
        <Choices />
        <button type="button" className="button mt-2 w-full justify-center" onClick={openModels}>
          {words.connectHow}
        </button>
        <Link
          href="/settings"
          className="button mt-2 w-full justify-center"
          onClick={(event) => event.currentTarget.closest<HTMLElement>("[popover]")?.hidePopover()}
        >
          {words.allSettings}
        </Link>
      </div>
    </>
  );
}

/** Preferences of this browser. */
export function Choices() {
  const words = useWords();
  return (
    <>
      <Choice label={words.theme} preference={theme}>
        <option value={"system" satisfies Theme}>{words.themeSystem}</option>
        <option value={"light" satisfies Theme}>{words.themeLight}</option>
        <option value={"dark" satisfies Theme}>{words.themeDark}</option>
      </Choice>
      <Choice label={words.language} preference={language}>
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option key={code} value={code} lang={code}>
            {name}
          </option>
        ))}
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
    </>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  preference: Preference<T>;
  children: ReactNode;
}

export function Choice<T extends string>({ label, preference, children }: ChoiceProps<T>) {
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
