import type { AvatarStage } from "@throughline/avatar";
import { Pause, Pin, Play, Smile, X } from "lucide-react";
import { type CSSProperties, useEffect, useId, useRef, useState, useSyncExternalStore } from "react";
import { useWords } from "../i18n/use.ts";
import type { Words } from "../i18n/words.ts";
import { avatarShown, bubblePosition } from "../preferences.ts";
import { IconButton } from "../ui/icon-button.tsx";
import { useDrag } from "./drag.ts";
import type { Avatar } from "./model.ts";

const WIDE = "(min-width: 1100px)";

/** The avatar, if there is room for it: next to the conversation, or as a small bubble over the composer. */
export function AvatarPanel({ avatar }: { avatar: Avatar }) {
  const words = useWords();
  const stage = useSyncExternalStore(avatar.subscribe, avatar.get);
  const isWide = useIsWide();
  // Reserves the space while the avatar loads, so that nothing moves.
  if (!isWide) return null;
  return (
    <aside aria-label={words.avatar} className="flex w-70 flex-none flex-col border-l border-line bg-sunken">
      {stage && <Panel avatar={avatar} stage={stage} />}
    </aside>
  );
}

/** Small avatar on a narrow screen; a tap opens the panel. */
export function AvatarBubble({ avatar }: { avatar: Avatar }) {
  const words = useWords();
  const stage = useSyncExternalStore(avatar.subscribe, avatar.get);
  const isWide = useIsWide();
  if (isWide || stage === undefined) return null;
  return <Bubble avatar={avatar} stage={stage} words={words} />;
}

function Bubble({ avatar, stage, words }: { avatar: Avatar; stage: AvatarStage; words: Words }) {
  const { expression } = useSyncExternalStore(stage.subscribe, stage.get);
  const [isOpen, setOpen] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const position = useSyncExternalStore(bubblePosition.subscribe, bubblePosition.get);
  const drag = useDrag((x, y) => bubblePosition.set(`${x.toFixed(3)} ${y.toFixed(3)}`));
  const [x = "1", y = "0"] = position.split(" ");
  const aside = (): void =>
    bubblePosition.set(position === "" || Number(x) > 0.5 ? `0 ${y === "0" ? "0.7" : y}` : "");
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <>
      <div
        className="avatar-bubble"
        data-moved={position !== ""}
        style={position === "" ? undefined : ({ "--x": x, "--y": y } as CSSProperties)}
        onPointerDown={drag.onPointerDown}
      >
        <button
          type="button"
          aria-label={`${words.avatar}: ${faceOf(words, expression)}`}
          aria-haspopup="dialog"
          onClick={() => drag.wasMoved() || setOpen(true)}
          className="avatar-bubble-face"
        >
          {!isOpen && <Figure avatar={avatar} />}
        </button>
        <button
          type="button"
          aria-label={words.hideAvatar}
          title={words.hideAvatar}
          onClick={() => avatarShown.set("hidden")}
          className="avatar-bubble-close"
        >
          <X aria-hidden size={13} />
        </button>
      </div>
      <dialog
        ref={dialog}
        className="sheet"
        aria-label={words.avatar}
        onClose={() => setOpen(false)}
        onClick={(event) => event.target === event.currentTarget && setOpen(false)}
        onKeyDown={(event) => event.stopPropagation()}
      >
        {isOpen && <Panel avatar={avatar} stage={stage} />}
        <div className="mt-3 flex flex-wrap justify-center gap-2">
          <button type="button" className="button" onClick={aside}>
            {words.moveAvatar}
          </button>
          <button type="button" className="button" onClick={() => setOpen(false)}>
            {words.close}
          </button>
        </div>
      </dialog>
    </>
  );
}

/** Name of the avatar, its current expression, and a choice of others. */
function Panel({ avatar, stage }: { avatar: Avatar; stage: AvatarStage }) {
  const words = useWords();
  const { expression, isPinned, isPaused } = useSyncExternalStore(stage.subscribe, stage.get);
  const face = faceOf(words, expression);
  const [hasFaces, setFaces] = useState(false);
  const faces = useId();
  return (
    <>
      <div className="flex h-13 flex-none items-center gap-1 pr-3 pl-4">
        <h2 className="min-w-0 flex-1 truncate text-[13px] font-semibold">{stage.info.name}</h2>
        <IconButton
          aria-expanded={hasFaces}
          aria-controls={faces}
          label={words.faces}
          onClick={() => setFaces(!hasFaces)}
        >
          <Smile aria-hidden size={16} />
        </IconButton>
        <button
          type="button"
          className="icon-button aria-pressed:text-accent"
          aria-pressed={isPinned}
          aria-label={words.pinFace}
          title={words.pinFace}
          onClick={() => stage.pin(!isPinned)}
        >
          <Pin aria-hidden size={16} fill={isPinned ? "currentColor" : "none"} />
        </button>
        <IconButton aria-pressed={isPaused} label={words.pauseAvatar} onClick={() => stage.pause(!isPaused)}>
          {isPaused ? <Play aria-hidden size={16} /> : <Pause aria-hidden size={16} />}
        </IconButton>
      </div>
      <div role="img" aria-label={`${stage.info.name}: ${face}`} className="avatar-figure">
        <Figure avatar={avatar} />
      </div>
      <ul
        id={faces}
        hidden={!hasFaces}
        aria-label={words.faces}
        className="flex-none flex-wrap justify-center gap-1.5 p-4 not-[[hidden]]:flex"
      >
        {stage.expressions.map((name) => (
          <li key={name}>
            <button
              type="button"
              className="chip"
              aria-pressed={name === expression}
              onClick={() => stage.expression(name)}
            >
              {faceOf(words, name)}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Container that the avatar is drawn into. */
function Figure({ avatar }: { avatar: Avatar }) {
  const host = useRef<HTMLSpanElement>(null);
  useEffect(() => (host.current === null ? undefined : avatar.show(host.current)), [avatar]);
  return <span ref={host} aria-hidden className="avatar-place" />;
}

/** Name of an expression in the language of the page, if it is known: custom models have names of their own. */
function faceOf(words: Words, name: string): string {
  return new Map(Object.entries(words.expression)).get(name) ?? name;
}

export function useIsWide(): boolean {
  return useSyncExternalStore(
    (listener) => {
      const query = globalThis.matchMedia?.(WIDE);
      query?.addEventListener("change", listener);
      return () => query?.removeEventListener("change", listener);
    },
    () => globalThis.matchMedia?.(WIDE).matches ?? true,
  );
}
