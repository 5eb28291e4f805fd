//! Decisions of people, stored for later calls: bound to one definition of a tool and to arguments, never to a name
//! alone.

use super::decision::{ApprovalDecision, PolicyInput};
use super::matcher::{ArgumentTest, MatchResult};
use super::rule::lookup_argument;
use crate::id::ApprovalId;
use crate::text::canonical;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use throughline_wire::ToolName;

/// A person's request to remember an answer.
///
/// ```
/// use throughline_engine::{ApprovalScope, RememberRequest};
///
/// let request: RememberRequest = serde_json::from_str(r#"{"scope": "turn", "constraints": "any"}"#)?;
/// assert_eq!(request, RememberRequest::any(ApprovalScope::Turn));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberRequest {
    /// Scope of the answer.
    pub scope: ApprovalScope,
    /// Arguments that it holds for. Default: exactly these.
    #[serde(default)]
    pub constraints: ArgumentConstraints,
}

impl RememberRequest {
    /// For the same arguments exactly.
    pub fn exactly(scope: ApprovalScope) -> Self {
        Self { scope, constraints: ArgumentConstraints::Exact }
    }

    /// For the same tool, as it is defined now, with any arguments.
    pub fn any(scope: ApprovalScope) -> Self {
        Self { scope, constraints: ArgumentConstraints::Any }
    }
}

/// Scope in which an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// For this call; nothing is remembered.
    Call,
    /// For later calls of the turn: the machine sees to it.
    Turn,
    /// For later turns of the conversation as well: the store of conversations passes it in with
    /// [`TurnSetup::remembered`](crate::TurnSetup::remembered).
    Conversation,
    /// For every conversation, likewise.
    Always,
}

impl ApprovalScope {
    /// Name of the scope in events.
    pub fn name(self) -> &'static str {
        match self {
            ApprovalScope::Call => "call",
            ApprovalScope::Turn => "turn",
            ApprovalScope::Conversation => "conversation",
            ApprovalScope::Always => "always",
        }
    }
}

/// The arguments that an answer holds for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentConstraints {
    /// Exactly the arguments of the approval request.
    #[default]
    Exact,
    /// Any. The definition of the tool still has to be the same.
    Any,
    /// Arguments that pass all of these tests, by name or JSON pointer; other arguments are ignored.
    Arguments(BTreeMap<String, ArgumentTest>),
}

/// A remembered answer. A field of a later release makes it unreadable, since ignoring a constraint would
/// allow more than was meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberedDecision {
    /// Remembered decision.
    pub decision: ApprovalDecision,
    /// Scope in which it holds.
    pub scope: ApprovalScope,
    /// Name of the tool.
    pub tool: ToolName,
    /// Fingerprint of the tool definition in the approval request.
    pub fingerprint: String,
    /// Hash of the only arguments that the decision holds for; absent = all that pass the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_hash: Option<String>,
    /// Tests by name or JSON pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentTest>,
    /// Reason of a denial; the model sees it each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Text of the question that was answered so, for people; absent in what earlier releases stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// Id of that question; absent in what earlier releases stored, and in events, which name it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ApprovalId>,
}

impl RememberedDecision {
    /// Builds the decision to remember from an answer about `case`; `None` if it is for this call only.
    pub(crate) fn from_answer(
        remember: &RememberRequest,
        case: &PolicyInput<'_>,
        decision: ApprovalDecision,
        reason: Option<&str>,
        asked: Option<&str>,
    ) -> Option<Self> {
        let (arguments_hash, arguments) = match &remember.constraints {
            ArgumentConstraints::Exact => (Some(canonical::arguments_hash(case.arguments)), BTreeMap::new()),
            ArgumentConstraints::Any => (None, BTreeMap::new()),
            ArgumentConstraints::Arguments(tests) => (None, tests.clone()),
        };
        (remember.scope > ApprovalScope::Call).then(|| Self {
            decision,
            scope: remember.scope,
            tool: case.tool.name.clone(),
            fingerprint: case.fingerprint.to_owned(),
            arguments_hash,
            arguments,
            reason: reason.map(ToOwned::to_owned),
            asked: asked.map(ToOwned::to_owned),
            question: None,
        })
    }

    /// True if it answers for this call. An argument that is unclear fits a denial and no approval.
    pub(crate) fn applies_to(&self, case: &PolicyInput<'_>) -> bool {
        let value = &case.arguments.value;
        self.tool == case.tool.name
            && self.fingerprint == case.fingerprint
            && self.arguments.iter().all(|(which, test)| {
                match (lookup_argument(value, which), self.decision) {
                    (None, _) => false,
                    (Some(value), ApprovalDecision::Approve) => test.matches_all(value) == MatchResult::Yes,
                    (Some(value), ApprovalDecision::Deny) => test.matches_any(value) != MatchResult::No,
                }
            })
            && self
                .arguments_hash
                .as_ref()
                .is_none_or(|hash| *hash == canonical::arguments_hash(case.arguments))
    }

    /// True if both apply to the same calls, with any decision: the later one replaces the earlier one.
    pub fn is_about_same_calls(&self, other: &Self) -> bool {
        (&self.tool, &self.fingerprint, &self.arguments_hash, &self.arguments)
            == (&other.tool, &other.fingerprint, &other.arguments_hash, &other.arguments)
    }

    /// As events name it.
    pub(crate) fn rule_name(&self) -> String {
        format!("remembered:{}", self.scope.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, OfferedTool};
    use serde_json::{Value, json};
    use throughline_wire::CallArguments;

    fn check(remembered: &RememberedDecision, tool: &OfferedTool, arguments: Value, fits: bool) {
        let arguments = CallArguments::from_value(arguments);
        let case = PolicyInput { tool, fingerprint: &tool.fingerprint, arguments: &arguments };
        assert_eq!(remembered.applies_to(&case), fits, "{remembered:?} and {} {}", tool.name, arguments.text);
    }

    fn remembered(
        tool: &OfferedTool,
        decision: ApprovalDecision,
        constraints: ArgumentConstraints,
    ) -> RememberedDecision {
        let arguments = CallArguments::from_value(json!({"path": "/srv/a", "mode": 1}));
        let case = PolicyInput { tool, fingerprint: &tool.fingerprint, arguments: &arguments };
        RememberedDecision::from_answer(
            &RememberRequest { scope: ApprovalScope::Turn, constraints },
            &case,
            decision,
            None,
            None,
        )
        .unwrap()
    }

    #[test]
    fn remembered_decision_is_bound_to_definition_and_arguments() {
        let tool = OfferedTool { fingerprint: "f1".into(), ..OfferedTool::new("files.put", Effect::Write) };
        let redefined = OfferedTool { fingerprint: "f2".into(), ..tool.clone() };
        let namesake =
            OfferedTool { fingerprint: "f1".into(), ..OfferedTool::new("notes.put", Effect::Write) };
        let same = || json!({"mode": 1, "path": "/srv/a"});
        let exact = remembered(&tool, ApprovalDecision::Approve, ArgumentConstraints::Exact);
        check(&exact, &tool, same(), true);
        check(&exact, &tool, json!({"path": "/srv/a", "mode": 2}), false);
        check(&exact, &tool, json!({"path": "/srv/a"}), false);
        let any = remembered(&tool, ApprovalDecision::Approve, ArgumentConstraints::Any);
        check(&any, &tool, json!({}), true);
        for remembered in [&exact, &any] {
            check(remembered, &redefined, same(), false);
            check(remembered, &namesake, same(), false);
        }
        let under = BTreeMap::from([("path".to_owned(), ArgumentTest::Under("/srv".into()))]);
        let approval =
            remembered(&tool, ApprovalDecision::Approve, ArgumentConstraints::Arguments(under.clone()));
        let denial = remembered(&tool, ApprovalDecision::Deny, ArgumentConstraints::Arguments(under));
        for (arguments, approved, denied) in [
            (json!({"path": "/srv/b"}), true, true),
            (json!({"path": "/etc/b"}), false, false),
            (json!({"path": "b"}), false, true),
            (json!({"path": ["/srv/b", "/etc/b"]}), false, true),
            (json!({}), false, false),
        ] {
            check(&approval, &tool, arguments.clone(), approved);
            check(&denial, &tool, arguments, denied);
        }
    }

    #[test]
    fn remembered_decision_compares_numbers_by_exact_text() {
        let tool = OfferedTool::new("bank.pay", Effect::External);
        let arguments = |text: &str| CallArguments {
            text: text.into(),
            value: serde_json::from_str(text).unwrap(),
            repairs: Vec::new(),
        };
        let paid = arguments(r#"{"to":123456789012345678901234}"#);
        let case = PolicyInput { tool: &tool, fingerprint: "", arguments: &paid };
        let remembered = RememberedDecision::from_answer(
            &RememberRequest::exactly(ApprovalScope::Always),
            &case,
            ApprovalDecision::Approve,
            None,
            None,
        )
        .unwrap();
        assert!(remembered.applies_to(&case));
        let other = arguments(r#"{"to":123456789012345678901235}"#);
        assert_eq!(paid.value, other.value);
        assert!(!remembered.applies_to(&PolicyInput { arguments: &other, ..case }));
    }

    #[test]
    fn remembered_decision_rejects_unknown_fields_and_call_scope() {
        let tool = OfferedTool::new("files.put", Effect::Write);
        let remembered = remembered(&tool, ApprovalDecision::Approve, ArgumentConstraints::Exact);
        let mut json = serde_json::to_value(&remembered).unwrap();
        assert_eq!(serde_json::from_value::<RememberedDecision>(json.clone()).unwrap(), remembered);
        json["only_on_mondays"] = true.into();
        assert!(serde_json::from_value::<RememberedDecision>(json).is_err());
        let call = RememberRequest::exactly(ApprovalScope::Call);
        let arguments = CallArguments::from_value(json!({}));
        let case = PolicyInput { tool: &tool, fingerprint: "", arguments: &arguments };
        assert_eq!(
            RememberedDecision::from_answer(&call, &case, ApprovalDecision::Approve, None, None),
            None
        );
    }
}
