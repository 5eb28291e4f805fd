import type { Throughline } from "@throughline/client";
import { createContext, type ReactNode, useContext, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { later } from "../ui/later.tsx";
import type { Session } from "./session.ts";

// Loaded on demand: most users are signed in.
const SignIn = later(() => import("./sign-in.tsx"), "view");

const Client = createContext<Throughline | undefined>(undefined);
const Own = createContext<Session | undefined>(undefined);

export const ClientProvider = Client.Provider;

/** The client of the signed-in user. */
export function useClient(): Throughline {
  const client = useContext(Client);
  if (client === undefined) throw new Error("nobody is signed in here");
  return client;
}

/** The session, to sign out. */
export function useSession(): Session | undefined {
  return useContext(Own);
}

/** Shows the page to signed-in users, and the sign-in form to others. */
export function SignedIn({ session, children }: { session: Session; children: ReactNode }) {
  const words = useWords();
  const state = useSyncExternalStore(session.subscribe, session.get);
  switch (state.phase) {
    case "in":
      return (
        <Own value={session}>
          <Client value={state.client}>{children}</Client>
        </Own>
      );
    case "out":
      return <SignIn session={session} refused={state.refused} />;
    case "entering":
      return null;
    case "unreachable":
      return (
        <main className="grid h-dvh place-items-center p-6 text-center">
          <div role="status">
            <h1>{words.unreachableRetrying}</h1>
          </div>
        </main>
      );
  }
}
