import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { announcements } from "../../preferences.ts";
import type { Announcements } from "../model/announcements.ts";

/** Live region for screen readers: whole sentences instead of single tokens. */
export function Announcer({ from }: { from: Announcements }) {
  const wanted = useSyncExternalStore(announcements.subscribe, announcements.get);
  const [text, setText] = useState("");
  const wish = useRef(wanted);
  useEffect(() => {
    wish.current = wanted;
  });
  useEffect(() => from.listen(setText, () => wish.current), [from]);
  return (
    <p role="status" className="sr-only">
      {text}
    </p>
  );
}
