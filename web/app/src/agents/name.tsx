import { type FormEvent, useState } from "react";
import { useWords } from "../i18n/use.ts";
import { Dialog } from "./dialog.tsx";
import { useAgentWords } from "./words.ts";

interface NameDialogProps {
  title: string;
  /** Initial value of the field. */
  first: string;
  /** Creates the agent; an error is shown, and the typed name is kept. */
  make(name: string): Promise<void>;
  close(): void;
}

/** Dialog for the name of a new agent. */
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
