import { useId } from "react";
import { type CustomUpstream, DIALECTS, NAME_MAX, nameOf } from "./custom-upstream.ts";
import { useConnectWords } from "./words.ts";

interface CustomFieldsProps {
  upstream: CustomUpstream;
  change(upstream: CustomUpstream): void;
  /** The invalid field, as the server calls it. */
  invalidField: string | undefined;
  /** Id of the element with the error message. */
  errorId: string;
}

/** Fields for address, name and API of a custom upstream. */
export function CustomFields({ upstream, change, invalidField, errorId }: CustomFieldsProps) {
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
        aria-invalid={invalidField === "base_url"}
        aria-describedby={`${hint} ${errorId}`}
        className="field"
        value={upstream.address}
        onChange={(event) => change({ ...upstream, address: event.currentTarget.value })}
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
        aria-invalid={invalidField === "upstream"}
        aria-describedby={errorId}
        className="field"
        value={nameOf(upstream)}
        onChange={(event) => change({ ...upstream, name: event.currentTarget.value })}
      />
      <label htmlFor={dialect}>{words.dialect}</label>
      <select
        id={dialect}
        aria-invalid={invalidField === "dialect"}
        className="field"
        value={upstream.dialect}
        onChange={(event) => change({ ...upstream, dialect: event.currentTarget.value })}
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
