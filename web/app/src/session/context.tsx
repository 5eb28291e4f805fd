import type { Throughline } from "@throughline/client";
import { createContext, lazy, type ReactNode, Suspense, useContext, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import type { Session } from "./session.ts";

// Most who come are signed in.
const SignIn = lazy(() => import("./sign-in.tsx"));

const Client = createContext<Throughline | undefined>(undefined);

export const ClientProvider = Client.Provider;

/** The server, for whoever is signed in. */
export function useClient(): Throughline {
  const client = useContext(Client);
  if (client === undefined) throw new Error("nobody is signed in here");
  return client;
}

/** Shows the page to whoever is signed in, and to others how to become so. */
export function SignedIn({ session, children }: { session: Session; children: ReactNode }) {
  const words = useWords();
  const state = useSyncExternalStore(session.subscribe, session.get);
  switch (state.phase) {
    case "in":
      return <Client value={state.client}>{children}</Client>;
    case "out":
      return (
        <Suspense>
          <SignIn session={session} refused={state.refused} />
        </Suspense>
      );
    case "entering":
      return null;
    case "unreachable":
      return (
        <main className="grid h-dvh place-items-center p-6 text-center">
          <p role="status">{words.unreachableRetrying}</p>
        </main>
      );
  }
}
