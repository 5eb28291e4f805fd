import { type FormEvent, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { Dialog } from "./dialog.tsx";
import { useAgentWords } from "./words.ts";

interface NameDialogProps {
  title: string;
  /** What the field is filled in with. */
  first: string;
  /** Makes it; what is thrown is told, and nothing typed is lost. */
  make(name: string): Promise<void>;
  close(): void;
}

/** Asks for the name of an agent that is to be made. */
export function NameDialog({ title, first, make, close }: NameDialogProps) {
  const words = useAgentWords();
  const common = useWords();
  const [name, setName] = useState(first);
  const [refused, setRefused] = useState<string>();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    make(name.trim()).then(close, (error: unknown) => setRefused(String(error).replace(/^\w+: /, "")));
  };
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={submit} className="grid gap-3 text-[13px]">
        <label>
          {words.name}
          <input
            value={name}
            aria-invalid={refused !== undefined}
            placeholder={words.nameHint}
            autoComplete="off"
            onChange={(event) => setName(event.currentTarget.value)}
            className="field"
          />
        </label>
        <p role="alert" className="text-error">
          {refused}
        </p>
        <div className="flex justify-end gap-2">
          <button type="button" className="button" onClick={close}>
            {common.cancel}
          </button>
          <button type="submit" className="button primary">
            {words.create}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
