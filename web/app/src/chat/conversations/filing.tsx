import type { ConversationInfo, ConversationLabelList } from "@throughline/client";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { useWords } from "../../i18n/use.ts";
import { failed } from "../../ui/failed.ts";
import type { ConversationList } from "./model/list.ts";
import { useListWords } from "./words.ts";

interface FilingProps {
  conversation: ConversationInfo;
  list: ConversationList;
  labels: ConversationLabelList;
  close(): void;
}

/** Folder and tags of a conversation. */
export default function Filing({ conversation, list, labels, close }: FilingProps) {
  const words = useWords();
  const texts = useListWords();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [folder, setFolder] = useState(conversation.folder ?? "");
  const [tags, setTags] = useState(conversation.tags.join(", "));
  const [failure, setFailure] = useState<unknown>();
  useEffect(() => dialog.current?.showModal(), []);
  const chosen = tagsOf(tags);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const name = folder.trim();
    void list
      .change(conversation.id, { folder: name === "" ? null : name, tags: chosen })
      .then(() => dialog.current?.close(), setFailure);
  };
  const toggle = (tag: string): void => {
    const left = chosen.filter((one) => one !== tag);
    setTags((left.length === chosen.length ? [...chosen, tag] : left).join(", "));
  };
  return (
    <dialog ref={dialog} className="sheet" aria-labelledby={`${id}-title`} onClose={close}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <h2 id={`${id}-title`} className="text-[15px] font-semibold">
          {texts.file}
        </h2>
        <label className="text-[13px]">
          <span className="text-muted">{texts.folder}</span>
          <input
            dir="auto"
            value={folder}
            list={`${id}-folders`}
            placeholder={texts.noFolder}
            maxLength={80}
            onChange={(event) => setFolder(event.currentTarget.value)}
            className="field mt-1"
          />
        </label>
        <datalist id={`${id}-folders`}>
          {labels.folders.map(({ name }) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label className="text-[13px]">
          <span className="text-muted">{`${texts.tags} — ${texts.tagsHint}`}</span>
          <input
            dir="auto"
            value={tags}
            onChange={(event) => setTags(event.currentTarget.value)}
            className="field mt-1"
          />
        </label>
        {labels.tags.length > 0 && (
          <div className="flex max-h-32 flex-wrap gap-1.5 overflow-auto">
            {labels.tags.map(({ name }) => (
              <button
                key={name}
                type="button"
                className="chip"
                aria-pressed={chosen.includes(name)}
                onClick={() => toggle(name)}
              >
                {name}
              </button>
            ))}
          </div>
        )}
        {failure !== undefined && (
          <p role="alert" className="text-[13px] text-error">
            {failed(failure, words)}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <button type="button" className="button" onClick={() => dialog.current?.close()}>
            {words.cancel}
          </button>
          <button type="submit" className="button primary">
            {texts.save}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Unique tags, separated by Latin or Chinese commas. */
function tagsOf(text: string): string[] {
  const tags = text.split(/[,，、]/).map((tag) => tag.trim());
  return [...new Set(tags.filter((tag) => tag !== ""))];
}
