import type { FieldGroupInfo } from "@throughline/client";
import { type Form, UnitAndDefault } from "./fields.tsx";
import { TESTS } from "./model/rules.ts";
import { ROLES, TARGETS } from "./model/text-rules.ts";
import { useTextRuleWords } from "./text-words.ts";
import { useAgentWords } from "./words.ts";

/** Settings of a read-only agent, as text instead of disabled fields. */
export function FixedFields({ part: { help, fields }, form }: { part: FieldGroupInfo; form: Form }) {
  const words = useAgentWords();
  return (
    <>
      {help && <p className="text-[12.5px] text-muted">{help}</p>}
      <dl className="agent-fields fixed-fields">
        {fields.map((field) => {
          const { path, kind, label, help } = field;
          const value = form.draft.fields[path] ?? "";
          const isLong = kind === "text" || kind === "json" || kind === "lines";
          const text = typeof value === "boolean" ? (value ? words.on : words.off) : value;
          return (
            <div key={path} className={isLong ? "col-span-full" : undefined}>
              <dt>
                {label} <UnitAndDefault field={field} typed={value} />
              </dt>
              <dd data-empty={text === ""}>
                {text === "" ? words.notSet : isLong ? <pre className="pre">{text}</pre> : <bdi>{text}</bdi>}
              </dd>
              {help && <dd className="text-[12px] text-muted">{help}</dd>}
              {kind === "model" && form.facts && <dd className="text-[12px] text-muted">{form.facts}</dd>}
              {kind === "model" && form.remark && <dd className="text-[12px] text-waiting">{form.remark}</dd>}
            </div>
          );
        })}
      </dl>
    </>
  );
}

/** The rules of a read-only agent in order. `decides`: number of the rule that decides the sample call. */
export function FixedPolicy({ form, decides }: { form: Form; decides: number | undefined }) {
  const words = useAgentWords();
  const { rules, permissions } = form.draft;
  const decide: Readonly<Record<string, string>> = words.decide;
  const preset: Readonly<Record<string, string>> = words.permission;
  return (
    <>
      {rules.length > 0 && (
        <ol className="grid gap-2">
          {rules.map((rule, at) => (
            <li
              key={rule.key}
              aria-label={words.rule(at + 1)}
              className="rule"
              data-decides={decides === at + 1 || undefined}
            >
              <p className="text-[13px]">
                <strong className="tabular-nums">{at + 1}</strong> <b>{decide[rule.decide] ?? rule.decide}</b>
                {decides === at + 1 && (
                  <span className="pill ms-2" data-look="running">
                    {words.decides}
                  </span>
                )}
              </p>
              <dl className="rule-facts">
                <Part name={words.tool} text={rule.tool || words.any} />
                {rule.source !== "" && <Part name={words.source} text={rule.source} />}
                {rule.effect.length > 0 && <Part name={words.effects} text={rule.effect.join(", ")} />}
                {rule.tests.map(({ which, test, value }, number) => (
                  <Part key={number} name={which} text={`${howOf(test, words.how)} ${value}`} />
                ))}
                {rule.reason !== "" && <Part name={words.reason} text={rule.reason} />}
              </dl>
            </li>
          ))}
        </ol>
      )}
      <p className="text-[13px]">
        <b>{words.permissions}:</b> {preset[permissions] ?? permissions}
        <span className={`block text-[12px] ${permissions === "everything" ? "text-waiting" : "text-muted"}`}>
          {words.permissionHow[permissions]}
        </span>
      </p>
    </>
  );
}

function howOf(test: string, how: Readonly<Record<string, string>>): string {
  return TESTS.some((known) => known === test) ? (how[test] ?? test) : test;
}

/** The text rules of a read-only agent in order. */
export function FixedTextRules({ form }: { form: Form }) {
  const words = useTextRuleWords();
  const common = useAgentWords();
  const { textRules } = form.draft;
  if (textRules.length === 0) return <p className="text-[13px] text-muted">{words.noTextRules}</p>;
  return (
    <ol className="grid gap-2">
      {textRules.map((rule, at) => {
        const target = TARGETS.find((one) => one === rule.target);
        const roles = ROLES.filter((role) => rule.roles.includes(role)).map(
          (role) => words.role[role] ?? role,
        );
        return (
          <li key={rule.key} aria-label={words.textRule(at + 1)} className="rule">
            <p className="text-[13px]">
              <strong className="tabular-nums">{at + 1}</strong> <b>{rule.name}</b>{" "}
              {!rule.isEnabled && <span className="pill">{common.off}</span>}
            </p>
            <dl className="rule-facts">
              <Part name={words.pattern} text={rule.pattern} />
              <Part name={words.action} text={rule.isHiding ? words.hidden : words.replaced} />
              {!rule.isHiding && <Part name={words.replacement} text={rule.replace} />}
              <Part name={words.target} text={(target && words.targets[target]) ?? rule.target} />
              <Part name={words.roles} text={roles.join(", ")} />
            </dl>
          </li>
        );
      })}
    </ol>
  );
}

function Part({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}
