//! Permissions in one word: what each preset decides, and that the agent's own rules come first.

use crate::script::{ScriptedTurn, setup};
use serde_json::json;
use throughline_engine::{
    Effect, OfferedTool, PermissionPreset, Policy, PolicyDecision, PolicyRule, RuleAction, explain,
};
use throughline_wire::CallArguments;

/// `allow`, `ask` or `deny`, and the rule.
fn decide(policy: &Policy, name: &str, source: &str, effect: Effect) -> (&'static str, String) {
    let tool = OfferedTool { source: source.into(), ..OfferedTool::new(name, effect) };
    match explain(&tool, &CallArguments::from_value(json!({})), policy, &[]) {
        PolicyDecision::Allow { rule } => ("allow", rule),
        PolicyDecision::Ask { rule } => ("ask", rule),
        PolicyDecision::Deny { rule, .. } => ("deny", rule),
    }
}

fn check(preset: PermissionPreset, expected: [(&str, &str, Effect, &str, &str); 4]) {
    let policy = Policy { permissions: Some(preset), ..Policy::default() };
    for (name, source, effect, decision, rule) in expected {
        assert_eq!(decide(&policy, name, source, effect), (decision, rule.to_owned()), "{preset:?} {name}");
    }
}

#[test]
fn permission_preset_decides_by_effect_and_source() {
    check(
        PermissionPreset::ReadOnly,
        [
            ("files.read", "builtin", Effect::Read, "allow", "effect:read"),
            ("files.write", "builtin", Effect::Write, "deny", "permissions:read_only"),
            ("notes.put", "mcp:notes", Effect::Idempotent, "deny", "permissions:read_only"),
            ("mail.send", "mcp:mail", Effect::External, "deny", "permissions:read_only"),
        ],
    );
    check(
        PermissionPreset::Workspace,
        [
            ("files.read", "builtin", Effect::Read, "allow", "effect:read"),
            ("files.write", "builtin", Effect::Write, "allow", "permissions:workspace"),
            // A server that calls its tool `files` is not the built-in one.
            ("files.write", "mcp:files", Effect::Write, "ask", "effect:write"),
            ("mail.send", "mcp:mail", Effect::External, "ask", "effect:external"),
        ],
    );
    check(
        PermissionPreset::Everything,
        [
            ("files.read", "builtin", Effect::Read, "allow", "permissions:everything"),
            ("files.write", "builtin", Effect::Write, "allow", "permissions:everything"),
            ("notes.put", "mcp:notes", Effect::Idempotent, "allow", "permissions:everything"),
            ("mail.send", "mcp:mail", Effect::External, "allow", "permissions:everything"),
        ],
    );
}

#[test]
fn agent_rules_precede_the_permission_preset() {
    let deny = PolicyRule::new(RuleAction::Deny).tool("mail");
    let policy =
        Policy { rules: vec![deny], permissions: Some(PermissionPreset::Everything), ..Policy::default() };
    assert_eq!(
        decide(&policy, "mail.send", "mcp:mail", Effect::External),
        ("deny", "rule:1 deny mail".into())
    );
    let allow = PolicyRule::new(RuleAction::Allow).tool("mail");
    let policy =
        Policy { rules: vec![allow], permissions: Some(PermissionPreset::ReadOnly), ..Policy::default() };
    assert_eq!(decide(&policy, "mail.send", "mcp:mail", Effect::External).0, "allow");
    assert_eq!(decide(&policy, "notes.put", "mcp:notes", Effect::Idempotent).0, "deny");
}

#[test]
fn preset_denial_is_logged_and_explained_to_the_model() {
    let mut setup = setup("tools mail:external; barrier");
    setup.policy.permissions = Some(PermissionPreset::ReadOnly);
    let mut scripted = ScriptedTurn::new(setup);
    for line in ["open A mail", "seal A {}", "finish tool_calls", "text ok", "finish stop"] {
        scripted.line(line);
    }
    let message = scripted.message();
    let call = message.calls().next().unwrap();
    assert_eq!(call.rule.as_deref(), Some("permissions:read_only"));
    let told = serde_json::to_string(&scripted.requests[1].messages).unwrap();
    assert!(told.contains("is read-only"), "{told}");
}
