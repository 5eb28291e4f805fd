import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { fetchWords } from "./i18n/words.ts";
import { applyPreferences, language } from "./preferences.ts";
import { SignedIn } from "./session/context.tsx";
import { Session } from "./session/session.ts";
import { Shell } from "./shell/shell.tsx";
import { later } from "./ui/later.tsx";
import "./styles/main.css";

applyPreferences(document.documentElement);
/** Shared conversations are shown without a key. */
const isShared = location.pathname.startsWith("/s/");
const Shared = later(() => import("./sharing/view.tsx"), "view");
const session = new Session();
if (!isShared) void session.enter();
// Renders after the language is loaded, so that it does not change on the screen.
void fetchWords(language.get()).then(() => {
  const root = document.getElementById("root");
  if (!root) return;
  createRoot(root).render(
    <StrictMode>
      {isShared ? (
        <Shared />
      ) : (
        <SignedIn session={session}>
          <Shell />
        </SignedIn>
      )}
    </StrictMode>,
  );
});
