import type { ToolInfo, ToolList } from "@throughline/client";
import { folded } from "@throughline/json";
import { X } from "lucide-react";
import { type FormEvent, useId } from "react";
import { useWords } from "../i18n/use.ts";
import { ToolIcon } from "../shared/call-card/icon.tsx";
import { useTesterWords } from "../tester/words.ts";
import { IconButton } from "../ui/icon-button.tsx";
import { FieldError, type Form } from "./fields.tsx";
import { isAt } from "./model/form.ts";
import { useAgentWords } from "./words.ts";

/** Absent for a read-only agent, which shows states as text. */
type Turn = ((names: readonly string[], to: boolean | undefined) => void) | undefined;

interface ToolSwitchesProps {
  found: ToolList | undefined;
  form: Form;
  /** Filters tools by name, ignoring case. */
  search: string;
  isFixed: boolean;
}

/** Switches for every tool, for whole sources and for groups. The server decides which tools are offered in the end. */
export function ToolSwitches({ found, form, search, isFixed }: ToolSwitchesProps) {
  const words = useAgentWords();
  const { toggles } = form.draft;
  const change: Turn = (names, to) => {
    const rest = Object.entries(toggles).filter(([name]) => !names.includes(name));
    form.change({
      toggles: Object.fromEntries([...rest, ...(to === undefined ? [] : names.map((name) => [name, to]))]),
    });
  };
  const turn = isFixed ? undefined : change;
  const tools = found?.tools ?? [];
  const others = Object.keys(toggles).filter(
    (name) => isFound(name, search) && !tools.some((tool) => tool.name === name),
  );
  return (
    <div className="grid gap-3">
      {isAt(form.problem?.param, "tool_call.tool_toggles") && <FieldError problem={form.problem} />}
      {found?.sources.map(({ name, faults }) => {
        const shown = tools.filter((tool) => tool.source === name && isFound(tool.name, search));
        if (search !== "" && shown.length === 0) return null;
        return (
          <section key={name} aria-label={name}>
            <div className="flex items-center gap-2 border-b border-line pb-1 text-[12.5px]">
              <h3 className="mr-auto font-semibold">{name}</h3>
              {shown.length > 0 && (
                <Switch
                  label={`${words.switchOf(name)}: ${words.allNow}`}
                  names={shown.map((tool) => tool.name)}
                  unset={words.allNow}
                  toggles={toggles}
                  turn={turn}
                />
              )}
            </div>
            {faults.map(({ tool, message, remedy }) => (
              <p key={`${tool}${message}`} className="text-[12.5px] text-error">
                {[tool, message, remedy].filter(Boolean).join(" — ")}
              </p>
            ))}
            <ul>
              {shown.map((tool) => (
                <Tool key={tool.name} tool={tool} toggles={toggles} turn={turn} />
              ))}
            </ul>
          </section>
        );
      })}
      {(!isFixed && search === "") || others.length > 0 ? (
        <section aria-label={words.others}>
          <h3 className="border-b border-line pb-1 text-[12.5px] font-semibold">{words.others}</h3>
          <p className="text-[12px] text-muted">{words.othersHint}</p>
          <ul>
            {others.map((name) => (
              <li key={name} className="flex min-h-10 items-center gap-2 text-[12.5px]">
                <span className="mr-auto font-mono font-semibold">{name}</span>
                {found?.unknown_toggles.includes(name) && <span className="text-waiting">{words.idle}</span>}
                <Switch label={words.switchOf(name)} names={[name]} toggles={toggles} turn={turn} />
                {turn && (
                  <IconButton label={words.removeOf(name)} onClick={() => turn([name], undefined)}>
                    <X aria-hidden size={14} />
                  </IconButton>
                )}
              </li>
            ))}
          </ul>
          {turn && <Add tools={tools} add={(name) => turn([name], false)} />}
        </section>
      ) : null}
    </div>
  );
}

/** True if the name contains the search, ignoring case. */
export function isFound(name: string, search: string): boolean {
  return folded(name).includes(folded(search.trim()));
}

function Tool({ tool, ...rest }: { tool: ToolInfo; toggles: Form["draft"]["toggles"]; turn: Turn }) {
  const words = useAgentWords();
  const tester = useTesterWords();
  const { serverText } = useWords();
  return (
    <li className="flex min-h-11 items-center gap-2.5 py-1">
      <ToolIcon name={tool.name} source={tool.source} />
      <span className="min-w-0 flex-1 text-[12.5px]">
        <span className="font-mono font-semibold [overflow-wrap:anywhere]">{tool.name}</span>
        <span className={`block text-[12px] ${tool.offered ? "text-muted" : "text-waiting"}`}>
          {tool.offered ? tool.description : `${tester.notOffered}: ${serverText(tool.why_not ?? "")}`}
        </span>
      </span>
      <Switch label={words.switchOf(tool.name)} names={[tool.name]} unset={words.asDefault} {...rest} />
    </li>
  );
}

interface SwitchProps {
  label: string;
  /** Names of the tools that the switch turns on and off together. */
  names: readonly string[];
  /** Label of the unset state; absent: always set. */
  unset?: string;
  toggles: Form["draft"]["toggles"];
  turn: Turn;
}

function Switch({ label, names, unset, toggles, turn }: SwitchProps) {
  const words = useAgentWords();
  const states = new Set(names.map((name) => toggles[name]));
  const state = states.size === 1 ? [...states][0] : undefined;
  if (turn === undefined) {
    const text = state === undefined ? unset : state ? words.on : words.off;
    return <span className="flex-none text-[12.5px] text-muted">{text}</span>;
  }
  return (
    <select
      aria-label={label}
      value={String(state ?? "")}
      onChange={({ currentTarget: { value } }) => turn(names, value === "" ? undefined : value === "true")}
      className="field w-auto flex-none py-1 text-[12.5px]"
    >
      {unset !== undefined && <option value="">{unset}</option>}
      <option value="true">{words.on}</option>
      <option value="false">{words.off}</option>
    </select>
  );
}

/** A switch for a group, or for a tool that is not available now. */
function Add({ tools, add }: { tools: readonly ToolInfo[]; add(name: string): void }) {
  const words = useAgentWords();
  const id = useId();
  const groups = new Set(tools.map(({ name }) => name.slice(0, name.lastIndexOf("."))));
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get("name")).trim();
    if (name === "") return;
    add(name);
    event.currentTarget.reset();
  };
  return (
    <form onSubmit={submit} className="mt-1 flex gap-2">
      <input name="name" list={id} autoComplete="off" aria-label={words.addSwitch} className="field w-44" />
      <datalist id={id}>
        {[...groups].map((group) => (
          <option key={group} value={group} />
        ))}
      </datalist>
      <button type="submit" className="button">
        {words.addSwitch}
      </button>
    </form>
  );
}
