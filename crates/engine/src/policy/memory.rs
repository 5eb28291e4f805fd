//! What people have said, kept for later calls: bound to one definition of a tool and to arguments, never to a name
//! alone. R: A2, A3

use super::rule::argument;
use super::test::{ArgumentTest, Fit};
use super::{Case, Decision};
use crate::canonical;
use crate::id::ApprovalId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use throughline_wire::ToolName;

/// What a person wants to be kept of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// For how long.
    pub scope: Scope,
    /// For which arguments. Default: exactly these.
    #[serde(default)]
    pub constraints: Constraints,
}

impl Remember {
    /// For the same arguments exactly.
    pub fn exactly(scope: Scope) -> Self {
        Self { scope, constraints: Constraints::Exact }
    }

    /// For the same tool, as it is defined now, with any arguments.
    pub fn any(scope: Scope) -> Self {
        Self { scope, constraints: Constraints::Any }
    }
}

/// For how long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For this call; nothing is kept.
    Call,
    /// For later calls of the turn: the machine sees to it.
    Turn,
    /// For later turns of the conversation as well: whoever keeps conversations hands it in with
    /// [`TurnSetup::remembered`](crate::TurnSetup::remembered).
    Conversation,
    /// For every conversation, likewise.
    Always,
}

impl Scope {
    /// Its name in events.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Call => "call",
            Scope::Turn => "turn",
            Scope::Conversation => "conversation",
            Scope::Always => "always",
        }
    }
}

/// Which arguments an answer holds for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraints {
    /// Exactly those that were asked about.
    #[default]
    Exact,
    /// Any. The definition of the tool still has to be the same.
    Any,
    /// Those that pass all of these tests, by name or JSON pointer; others are not looked at.
    Arguments(BTreeMap<String, ArgumentTest>),
}

/// An answer that is kept. What is not understood of it (a field of a later release) makes it unreadable, since a
/// constraint left out would allow more than was meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The answer.
    pub decision: Decision,
    /// For how long it holds.
    pub scope: Scope,
    /// Which tool.
    pub tool: ToolName,
    /// Which definition of it.
    pub fingerprint: String,
    /// Hash of the only arguments that it holds for; absent = all that pass the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_hash: Option<String>,
    /// Tests by name or JSON pointer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentTest>,
    /// Why it was denied; told to the model each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The question that was answered so; absent in what earlier releases kept, and in events, which name it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ApprovalId>,
}

impl Remembered {
    /// What is kept of an answer to the question about `case`; nothing, if it is for this call only.
    pub(crate) fn of(
        remember: &Remember,
        case: &Case<'_>,
        decision: Decision,
        reason: Option<&str>,
    ) -> Option<Self> {
        let (arguments_hash, arguments) = match &remember.constraints {
            Constraints::Exact => (Some(canonical::arguments_hash(case.arguments)), BTreeMap::new()),
            Constraints::Any => (None, BTreeMap::new()),
            Constraints::Arguments(tests) => (None, tests.clone()),
        };
        (remember.scope > Scope::Call).then(|| Self {
            decision,
            scope: remember.scope,
            tool: case.tool.name.clone(),
            fingerprint: case.fingerprint.to_owned(),
            arguments_hash,
            arguments,
            reason: reason.map(ToOwned::to_owned),
            question: None,
        })
    }

    /// Whether it answers for this call. An argument that is unclear fits a denial and no approval.
    pub(crate) fn fits(&self, case: &Case<'_>) -> bool {
        let value = &case.arguments.value;
        self.tool == case.tool.name
            && self.fingerprint == case.fingerprint
            && self.arguments.iter().all(|(which, test)| match (argument(value, which), self.decision) {
                (None, _) => false,
                (Some(value), Decision::Approve) => test.of_all(value) == Fit::Yes,
                (Some(value), Decision::Deny) => test.of_any(value) != Fit::No,
            })
            && self
                .arguments_hash
                .as_ref()
                .is_none_or(|hash| *hash == canonical::arguments_hash(case.arguments))
    }

    /// As events name it.
    pub(crate) fn rule(&self) -> String {
        format!("remembered:{}", self.scope.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, OfferedTool};
    use serde_json::{Value, json};
    use throughline_wire::Arguments;

    fn check(held: &Remembered, tool: &OfferedTool, arguments: Value, fits: bool) {
        let arguments = Arguments::from_value(arguments);
        let case = Case { tool, fingerprint: &tool.fingerprint, arguments: &arguments };
        assert_eq!(held.fits(&case), fits, "{held:?} and {} {}", tool.name, arguments.text);
    }

    fn kept(tool: &OfferedTool, decision: Decision, constraints: Constraints) -> Remembered {
        let arguments = Arguments::from_value(json!({"path": "/srv/a", "mode": 1}));
        let case = Case { tool, fingerprint: &tool.fingerprint, arguments: &arguments };
        Remembered::of(&Remember { scope: Scope::Turn, constraints }, &case, decision, None).unwrap()
    }

    // R: A3
    #[test]
    fn it_is_bound_to_the_definition_and_to_arguments() {
        let tool = OfferedTool { fingerprint: "f1".into(), ..OfferedTool::new("files.put", Effect::Write) };
        let redefined = OfferedTool { fingerprint: "f2".into(), ..tool.clone() };
        let namesake =
            OfferedTool { fingerprint: "f1".into(), ..OfferedTool::new("notes.put", Effect::Write) };
        let same = || json!({"mode": 1, "path": "/srv/a"});
        let exact = kept(&tool, Decision::Approve, Constraints::Exact);
        check(&exact, &tool, same(), true);
        check(&exact, &tool, json!({"path": "/srv/a", "mode": 2}), false);
        check(&exact, &tool, json!({"path": "/srv/a"}), false);
        let any = kept(&tool, Decision::Approve, Constraints::Any);
        check(&any, &tool, json!({}), true);
        for held in [&exact, &any] {
            check(held, &redefined, same(), false);
            check(held, &namesake, same(), false);
        }
        let under = BTreeMap::from([("path".to_owned(), ArgumentTest::Under("/srv".into()))]);
        let approval = kept(&tool, Decision::Approve, Constraints::Arguments(under.clone()));
        let denial = kept(&tool, Decision::Deny, Constraints::Arguments(under));
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
    fn numbers_that_a_value_rounds_are_told_apart() {
        let tool = OfferedTool::new("bank.pay", Effect::External);
        let arguments = |text: &str| Arguments {
            text: text.into(),
            value: serde_json::from_str(text).unwrap(),
            repairs: Vec::new(),
        };
        let paid = arguments(r#"{"to":123456789012345678901234}"#);
        let case = Case { tool: &tool, fingerprint: "", arguments: &paid };
        let held = Remembered::of(&Remember::exactly(Scope::Always), &case, Decision::Approve, None).unwrap();
        assert!(held.fits(&case));
        let other = arguments(r#"{"to":123456789012345678901235}"#);
        assert_eq!(paid.value, other.value);
        assert!(!held.fits(&Case { arguments: &other, ..case }));
    }

    #[test]
    fn what_is_not_understood_is_not_kept() {
        let tool = OfferedTool::new("files.put", Effect::Write);
        let held = kept(&tool, Decision::Approve, Constraints::Exact);
        let mut json = serde_json::to_value(&held).unwrap();
        assert_eq!(serde_json::from_value::<Remembered>(json.clone()).unwrap(), held);
        json["only_on_mondays"] = true.into();
        assert!(serde_json::from_value::<Remembered>(json).is_err());
        let call = Remember::exactly(Scope::Call);
        let arguments = Arguments::from_value(json!({}));
        let case = Case { tool: &tool, fingerprint: "", arguments: &arguments };
        assert_eq!(Remembered::of(&call, &case, Decision::Approve, None), None);
    }
}
