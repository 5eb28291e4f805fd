import { useId } from "react";
import { DIALECTS, NAME_MAX, nameOf, type Own } from "./own.ts";
import { useConnectWords } from "./words.ts";

interface OwnFieldsProps {
  own: Own;
  change(own: Own): void;
  /** The invalid field, as the server calls it. */
  wrong: string | undefined;
  /** Id of the element with the error message. */
  why: string;
}

/** Fields for address, name and API of a custom upstream. */
export function OwnFields({ own, change, wrong, why }: OwnFieldsProps) {
  const words = useConnectWords();
  const [address, name, dialect, hint] = [useId(), useId(), useId(), useId()];
  return (
    <>
      <label htmlFor={address}>{words.address}</label>
      <input
        id={address}
        type="text"
        inputMode="url"
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        // Without a scheme, `localhost:8000` would be parsed as the scheme `localhost`.
        pattern="\s*https?://.+"
        title={words.addressForm}
        placeholder="http://localhost:8000/v1"
        aria-invalid={wrong === "base_url"}
        aria-describedby={`${hint} ${why}`}
        className="field"
        value={own.address}
        onChange={(event) => change({ ...own, address: event.currentTarget.value })}
      />
      <p id={hint}>{words.addressHint}</p>
      <label htmlFor={name}>{words.name}</label>
      <input
        id={name}
        type="text"
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        maxLength={NAME_MAX}
        pattern="[\p{L}\p{N}._\-]+"
        title={words.nameForm}
        aria-invalid={wrong === "upstream"}
        aria-describedby={why}
        className="field"
        value={nameOf(own)}
        onChange={(event) => change({ ...own, name: event.currentTarget.value })}
      />
      <label htmlFor={dialect}>{words.dialect}</label>
      <select
        id={dialect}
        aria-invalid={wrong === "dialect"}
        className="field"
        value={own.dialect}
        onChange={(event) => change({ ...own, dialect: event.currentTarget.value })}
      >
        {DIALECTS.map(([dialect, title]) => (
          <option key={dialect} value={dialect}>
            {title}
          </option>
        ))}
      </select>
    </>
  );
}
