import type { TextPreview } from "@throughline/client";
import { Plus } from "lucide-react";
import { useId } from "react";
import { FieldError, type Form } from "./fields.tsx";
import { isAt } from "./model/form.ts";
import { ROLES, TARGETS, type TextRuleDraft, textRuleDraft, withTarget } from "./model/text-rules.ts";
import { Ordered } from "./ordered.tsx";
import { useTextRuleWords } from "./text-words.ts";

/** The text rules in order; `seen`: their result for the sample text. */
export function TextRules({ form, seen }: { form: Form; seen: TextPreview | null | undefined }) {
  const words = useTextRuleWords();
  const { textRules } = form.draft;
  const put = (textRules: readonly TextRuleDraft[]): void => form.change({ textRules });
  const matchesOf = (at: number) => seen?.rules.find(({ index }) => index === at)?.matches ?? 0;
  return (
    <>
      <p className="text-[12.5px] text-muted">{words.textRulesHint}</p>
      <Ordered
        items={textRules}
        put={put}
        label={words.textRule}
        isMatched={(at) => matchesOf(at) > 0}
        head={(rule, at) => (
          <>
            <label className="flex items-center gap-1.5 text-[12.5px]">
              <input
                type="checkbox"
                className="switch"
                checked={rule.isEnabled}
                onChange={({ currentTarget: { checked } }) =>
                  put(textRules.with(at, { ...rule, isEnabled: checked }))
                }
              />
              {words.isOn}
            </label>
            {seen?.rules.some(({ index }) => index === at) && (
              <span className="pill" data-look={matchesOf(at) > 0 ? "running" : undefined}>
                {words.matches(matchesOf(at))}
              </span>
            )}
          </>
        )}
        body={(rule, at) => (
          <>
            <TextRule rule={rule} change={(rule) => put(textRules.with(at, rule))} />
            {isAt(form.problem?.param, `text_rules[${at}]`) && <FieldError problem={form.problem} />}
          </>
        )}
      />
      <div>
        <button
          type="button"
          className="button"
          onClick={() => put([...textRules, textRuleDraft({ pattern: "", replace: "", in: "shown" })])}
        >
          <Plus aria-hidden size={13} />
          {words.addTextRule}
        </button>
      </div>
    </>
  );
}

function TextRule({ rule, change }: { rule: TextRuleDraft; change(rule: TextRuleDraft): void }) {
  const words = useTextRuleWords();
  const id = useId();
  const { roles } = rule;
  return (
    <>
      <div className="agent-fields text-[12.5px]">
        <label className="col-span-full">
          {words.pattern}
          <input
            value={rule.pattern}
            placeholder={words.patternHint}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => change({ ...rule, pattern: event.currentTarget.value })}
            className="field font-mono text-[12.5px]"
          />
        </label>
        <label>
          {words.action}
          <select
            value={String(rule.isHiding)}
            onChange={(event) => change({ ...rule, isHiding: event.currentTarget.value === "true" })}
            className="field"
          >
            <option value="false">{words.replaced}</option>
            <option value="true">{words.hidden}</option>
          </select>
        </label>
        {!rule.isHiding && (
          <label>
            {words.replacement}
            <input
              value={rule.replace}
              placeholder={words.replacementHint}
              autoComplete="off"
              spellCheck={false}
              onChange={(event) => change({ ...rule, replace: event.currentTarget.value })}
              className="field font-mono text-[12.5px]"
            />
          </label>
        )}
        <label>
          {words.target}
          <select
            value={rule.target}
            onChange={(event) => change(withTarget(rule, event.currentTarget.value))}
            className="field"
          >
            {TARGETS.map((target) => (
              <option key={target} value={target}>
                {words.targets[target]}
              </option>
            ))}
          </select>
        </label>
        <label>
          {words.ruleName}
          <input
            value={rule.name}
            autoComplete="off"
            onChange={(event) => change({ ...rule, name: event.currentTarget.value })}
            className="field"
          />
        </label>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out like this everywhere */}
      <div role="group" aria-labelledby={id} className="flex flex-wrap items-center gap-1.5 text-[12.5px]">
        <span id={id}>{words.roles}</span>
        {ROLES.map((role) => {
          const isOn = roles.includes(role);
          const isImpossible = role === "user" && rule.target === "shown";
          return (
            <button
              key={role}
              type="button"
              className="chip"
              aria-pressed={isOn}
              disabled={isImpossible}
              title={isImpossible ? words.userShown : undefined}
              onClick={() =>
                change({ ...rule, roles: isOn ? roles.filter((one) => one !== role) : [...roles, role] })
              }
            >
              {words.role[role]}
            </button>
          );
        })}
      </div>
    </>
  );
}
