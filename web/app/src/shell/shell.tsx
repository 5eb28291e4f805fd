import { lazy, Suspense, useEffect, useState, useSyncExternalStore } from "react";
import { onOpenModels } from "../connect/open.ts";
import { useWords } from "../i18n/use.ts";
import { Boundary } from "./boundary.tsx";
import { Link } from "./link.tsx";
import { Rail } from "./rail.tsx";
import { onPath, path } from "./router.ts";
import { ROUTES } from "./routes.ts";

const Models = lazy(() => import("../connect/dialog.tsx"));

/** The rail and the view that the address names. */
export function Shell() {
  const words = useWords();
  const here = useSyncExternalStore(onPath, path);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => onOpenModels(() => setOpen(true)), []);
  const route = ROUTES.find((route) => route.shows(here));
  return (
    <div className="flex h-dvh flex-col-reverse min-[720px]:flex-row">
      <Rail here={here} />
      <main className="flex min-h-0 min-w-0 flex-1 flex-col">
        <Boundary key={route?.path}>
          <Suspense fallback={<p className="m-auto text-muted">{words.loading}</p>}>
            {route ? <route.view /> : <NotFound />}
          </Suspense>
        </Boundary>
      </main>
      {isOpen && (
        <Suspense>
          <Models close={() => setOpen(false)} />
        </Suspense>
      )}
    </div>
  );
}

function NotFound() {
  const words = useWords();
  return (
    <div className="m-auto text-center">
      <p>{words.notFound}</p>
      <Link href="/" className="text-accent underline">
        {words.toChat}
      </Link>
    </div>
  );
}
