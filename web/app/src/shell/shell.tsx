import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import { handleWorkerMessages, registerWorker } from "../notices/worker.ts";
import { useClient } from "../session/context.tsx";
import { Link } from "../shared/link.tsx";
import { onOpenModels } from "../shared/open-models.ts";
import { go, onPath, path } from "../shared/router.ts";
import { later } from "../ui/later.tsx";
import { ErrorBoundary } from "./error-boundary.tsx";
import { Rail } from "./rail.tsx";
import { ROUTES } from "./routes.ts";

const Models = later(() => import("../connect/dialog.tsx"), "above");

/** The rail and the current view. */
export function Shell() {
  const words = useWords();
  const here = useSyncExternalStore(onPath, path);
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  useEffect(() => onOpenModels(() => setOpen(true)), []);
  const client = useClient();
  useEffect(() => {
    registerWorker();
    return handleWorkerMessages(client, go);
  }, [client]);
  const route = ROUTES.find((route) => route.shows(here));
  return (
    <div className="flex h-dvh flex-col-reverse min-[720px]:flex-row">
      {/* biome-ignore lint/a11y/useValidAnchor: it is a link, but the hash belongs to the view */}
      <a
        href="#main"
        className="skip-link"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        {words.skipToContent}
      </a>
      <Rail here={here} />
      <main ref={main} id="main" tabIndex={-1} className="flex min-h-0 min-w-0 flex-1 flex-col outline-none">
        <ErrorBoundary key={route?.path}>
          {route ? (
            <route.view meanwhile={<p className="m-auto text-muted">{words.loading}</p>} />
          ) : (
            <NotFound />
          )}
        </ErrorBoundary>
      </main>
      {isOpen && <Models close={() => setOpen(false)} />}
    </div>
  );
}

function NotFound() {
  const words = useWords();
  return (
    <div className="m-auto text-center">
      <h1>{words.notFound}</h1>
      <Link href="/" className="text-accent underline">
        {words.toChat}
      </Link>
    </div>
  );
}
