import { Plus, X } from "lucide-react";
import { useWords } from "../i18n/use.ts";
import { IconButton } from "../ui/icon-button.tsx";
import { FieldError, type Form } from "./fields.tsx";
import { isAt } from "./model/form.ts";
import {
  DECISIONS,
  EFFECTS,
  PERMISSIONS,
  type RuleDraft,
  ruleDraft,
  strayTests,
  TESTS,
} from "./model/rules.ts";
import { Ordered } from "./ordered.tsx";
import { useAgentWords } from "./words.ts";

/** The rules in order. `decides`: number of the rule that decides the sample call. */
export function Policy({ form, decides }: { form: Form; decides: number | undefined }) {
  const words = useAgentWords();
  const { rules } = form.draft;
  const put = (rules: readonly RuleDraft[]): void => form.change({ rules });
  return (
    <>
      <p className="text-[12.5px] text-muted">{words.rulesHint}</p>
      <Ordered
        items={rules}
        put={put}
        label={words.rule}
        isMatched={(at) => decides === at + 1}
        head={(rule, at) => (
          <>
            <select
              aria-label={words.rule(at + 1)}
              value={rule.decide}
              onChange={({ currentTarget: { value } }) => put(rules.with(at, { ...rule, decide: value }))}
              className="field w-auto"
            >
              {DECISIONS.map((decide) => (
                <option key={decide} value={decide}>
                  {words.decide[decide]}
                </option>
              ))}
            </select>
            {decides === at + 1 && (
              <span className="pill" data-look="running">
                {words.decides}
              </span>
            )}
          </>
        )}
        body={(rule, at) => (
          <>
            <Rule rule={rule} change={(more) => put(rules.with(at, { ...rule, ...more }))} />
            {isAt(form.problem?.param, `policy[${at}]`) && <FieldError problem={form.problem} />}
          </>
        )}
      />
      <div>
        <button
          type="button"
          className="button"
          onClick={() => put([...rules, ruleDraft({ decide: "ask", tool: "*" })])}
        >
          <Plus aria-hidden size={13} />
          {words.addRule}
        </button>
      </div>
      <label className="grid gap-1 text-[13px]">
        <span className="font-medium">{words.permissions}</span>
        <select
          value={form.draft.permissions}
          onChange={(event) => form.change({ permissions: event.currentTarget.value })}
          className="field"
        >
          {PERMISSIONS.map((preset) => (
            <option key={preset} value={preset}>
              {words.permission[preset]}
            </option>
          ))}
        </select>
        <span
          className={`text-[12px] ${form.draft.permissions === "everything" ? "text-waiting" : "text-muted"}`}
        >
          {words.permissionHow[form.draft.permissions]}
        </span>
        {isAt(form.problem?.param, "permissions") && <FieldError problem={form.problem} />}
      </label>
    </>
  );
}

const HINTS = { tool: "files.read, files, mcp_*", source: "builtin, mcp:*", reason: undefined };

/** Editor of one rule. */
function Rule({ rule, change }: { rule: RuleDraft; change(more: Partial<RuleDraft>): void }) {
  const words = useAgentWords();
  const effects = useWords().effect;
  const stray = strayTests(rule);
  const { tests } = rule;
  return (
    <>
      <div className="agent-fields">
        {(["tool", "source", ...(rule.decide === "deny" ? (["reason"] as const) : [])] as const).map(
          (part) => (
            <label key={part} className={`text-[12.5px] ${part === "reason" ? "col-span-full" : ""}`}>
              {words[part]}
              <input
                value={rule[part]}
                placeholder={HINTS[part] && `${words.any} · ${HINTS[part]}`}
                autoComplete="off"
                onChange={(event) => change({ [part]: event.currentTarget.value })}
                className="field"
              />
            </label>
          ),
        )}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out like this everywhere */}
      <div
        role="group"
        aria-label={words.effects}
        className="flex flex-wrap items-center gap-1.5 text-[12.5px]"
      >
        {words.effects}
        {EFFECTS.map((effect) => {
          const isOn = rule.effect.includes(effect);
          return (
            <button
              key={effect}
              type="button"
              className="chip"
              title={effects[effect]}
              aria-pressed={isOn}
              onClick={() =>
                change({
                  effect: isOn ? rule.effect.filter((one) => one !== effect) : [...rule.effect, effect],
                })
              }
            >
              {effect}
            </button>
          );
        })}
      </div>
      {tests.map((test, at) => {
        const put = (more: Partial<typeof test>): void =>
          change({ tests: tests.with(at, { ...test, ...more }) });
        return (
          // Conditions have no keys: they are identified by index.
          <div key={at} className="flex flex-wrap items-center gap-2">
            <input
              aria-label={words.argument}
              aria-invalid={stray.has(test)}
              placeholder="path · /filter/path"
              value={test.which}
              onChange={(event) => put({ which: event.currentTarget.value })}
              className="field w-20 flex-1 font-mono text-[12.5px]"
            />
            <select
              aria-label={words.test}
              value={test.test}
              onChange={(event) => put({ test: event.currentTarget.value })}
              className="field w-auto"
            >
              {TESTS.map((how) => (
                <option key={how} value={how}>
                  {words.how[how]}
                </option>
              ))}
            </select>
            <input
              aria-label={words.value}
              value={test.value}
              onChange={(event) => put({ value: event.currentTarget.value })}
              className="field w-20 flex-1 font-mono text-[12.5px]"
            />
            <IconButton
              label={words.removeOf(words.test)}
              onClick={() => change({ tests: tests.toSpliced(at, 1) })}
            >
              <X aria-hidden size={14} />
            </IconButton>
            {stray.has(test) && <p className="w-full text-[12.5px] text-error">{words.stray}</p>}
          </div>
        );
      })}
      <div>
        <button
          type="button"
          className="button quiet"
          onClick={() => change({ tests: [...tests, { which: "", test: "equals", value: "" }] })}
        >
          <Plus aria-hidden size={13} />
          {words.test}
        </button>
      </div>
    </>
  );
}
