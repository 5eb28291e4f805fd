//! The permissions of rules and people, derived once more without the engine: who decided what about which arguments of
//! which definition. Asking the engine would let one bug hide in both.

use super::check::{BrokenInvariant, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use throughline_engine::{
    ApprovalDecision, ApprovalId, ApprovalRule, ApprovalScope, ApprovalTarget, ArgumentConstraints,
    ArgumentTest, ConfirmMode, Effect, Event, EventKind, OfferedTool, PermissionRule, PolicyRule,
    QuestionKind, RememberRequest, RememberedDecision, RuleAction, TurnInput, TurnSetup,
};
use throughline_wire::{CallArguments, CallId, ToolName, UpstreamCallId, WireName};

/// The value of `q` that no tool takes.
pub(super) const REFUSED_Q: i64 = 7;

/// A rule, in the few shapes that are drawn.
#[derive(Clone, Debug)]
pub(super) struct SimRule {
    pub decide: RuleAction,
    pub tool: Option<&'static str>,
    pub q: Option<&'static str>,
}

impl SimRule {
    pub(super) fn to_rule(&self) -> PolicyRule {
        let mut rule = PolicyRule::new(self.decide);
        if let Some(tool) = self.tool {
            rule = rule.tool(tool);
        }
        if let Some(q) = self.q {
            rule = rule.argument("q", ArgumentTest::Equals(q.into()));
        }
        rule
    }

    fn matches(&self, tool: &ToolName, arguments: &Value) -> bool {
        self.tool.is_none_or(|name| name == tool.as_str())
            && self.q.is_none_or(|q| arguments["q"].as_str() == Some(q))
    }
}

/// A person's decision that was remembered.
#[derive(Clone, Debug)]
pub(super) struct SimRemembered {
    pub decision: ApprovalDecision,
    pub tool: ToolName,
    pub fingerprint: String,
    pub arguments: SimConstraint,
}

/// Arguments for which a decision holds.
#[derive(Clone, Debug)]
pub(super) enum SimConstraint {
    Any,
    Exactly(Value),
    Q(String),
}

impl SimRemembered {
    pub(super) fn to_remembered(&self) -> RememberedDecision {
        let arguments = match &self.arguments {
            SimConstraint::Q(q) => {
                BTreeMap::from([("q".to_owned(), ArgumentTest::Equals(q.as_str().into()))])
            }
            SimConstraint::Any | SimConstraint::Exactly(_) => BTreeMap::new(),
        };
        RememberedDecision {
            decision: self.decision,
            scope: ApprovalScope::Always,
            tool: self.tool.clone(),
            fingerprint: self.fingerprint.clone(),
            arguments_hash: None,
            arguments,
            reason: None,
            asked: None,
            question: None,
        }
    }

    fn matches(&self, tool: &ToolName, fingerprint: &str, arguments: &Value) -> bool {
        self.tool == *tool
            && self.fingerprint == fingerprint
            && match &self.arguments {
                SimConstraint::Any => true,
                SimConstraint::Exactly(exact) => exact == arguments,
                SimConstraint::Q(q) => arguments["q"].as_str() == Some(q),
            }
    }
}

/// A person's answer to a question.
struct GivenAnswer {
    question: ApprovalId,
    decision: ApprovalDecision,
    hash: Option<String>,
    arguments: Option<Value>,
    remember: Option<RememberRequest>,
    stop: bool,
}

struct SimTool {
    name: ToolName,
    wire_name: WireName,
    effect: Effect,
    permission: PermissionRule,
    offered: String,
    /// Current definition; it may change.
    current: String,
    /// Definition according to the log.
    reported: String,
    /// The client that runs it declares it no more.
    is_withdrawn: bool,
}

/// One question, as the log has it.
struct AskedQuestion {
    id: ApprovalId,
    hash: String,
    fingerprint: String,
    shown: Value,
    open: bool,
    /// Approved, with these arguments.
    approved: Option<Value>,
}

#[derive(Default)]
struct SimCall {
    tool: Option<ToolName>,
    upstream_id: Option<UpstreamCallId>,
    /// Arguments that it would run with.
    arguments: Option<Value>,
    asked: Vec<AskedQuestion>,
}

/// The truth about approvals, and the log's view of it.
pub(super) struct ConsentChecker {
    rules: Vec<SimRule>,
    past_decisions: Vec<SimRemembered>,
    confirm: ConfirmMode,
    approval: ApprovalRule,
    tools: Vec<SimTool>,
    given_answers: Vec<GivenAnswer>,
    // A fold of the log.
    calls: BTreeMap<CallId, SimCall>,
    turn_decisions: Vec<SimRemembered>,
    hashes: BTreeMap<String, Value>,
    /// Calls whose arguments were changed, answers that were remembered, starts that were not made.
    pub(super) edited: u64,
    pub(super) remembered: u64,
    pub(super) redefined: u64,
}

impl ConsentChecker {
    /// `truth` is what tools really do; `setup` may have been lied to by a mutant.
    pub(super) fn new(
        setup: &TurnSetup,
        rules: Vec<SimRule>,
        past_decisions: Vec<SimRemembered>,
        truth: &[(WireName, Effect)],
    ) -> Self {
        let tool = |tool: &OfferedTool| SimTool {
            name: tool.name.clone(),
            wire_name: tool.wire_name.clone(),
            effect: truth
                .iter()
                .find(|(name, _)| *name == tool.wire_name)
                .map_or(Effect::External, |(_, effect)| *effect),
            permission: tool.permission,
            offered: tool.fingerprint.clone(),
            current: tool.fingerprint.clone(),
            reported: tool.fingerprint.clone(),
            is_withdrawn: false,
        };
        Self {
            rules,
            past_decisions,
            confirm: setup.policy.confirm,
            approval: setup.approval.clone(),
            tools: setup.tools.iter().map(tool).collect(),
            given_answers: Vec::new(),
            calls: BTreeMap::new(),
            turn_decisions: Vec::new(),
            hashes: BTreeMap::new(),
            edited: 0,
            remembered: 0,
            redefined: 0,
        }
    }

    /// Discards the log's view after the process died: the log is read again. Decisions of people stay.
    pub(super) fn forget_log(&mut self) {
        self.calls.clear();
        self.turn_decisions.clear();
        self.hashes.clear();
        (self.edited, self.remembered, self.redefined) = (0, 0, 0);
        for tool in &mut self.tools {
            tool.reported = tool.offered.clone();
        }
    }

    /// A tool gets another definition; returns its fingerprint.
    pub(super) fn redefine(&mut self, name: &ToolName) -> String {
        let Some(tool) = self.tools.iter_mut().find(|tool| tool.name == *name) else { return String::new() };
        tool.current.push('\'');
        tool.current.clone()
    }

    /// Current definition of a tool.
    pub(super) fn definition(&self, name: &ToolName) -> Option<&str> {
        self.tools.iter().find(|tool| tool.name == *name).map(|tool| tool.current.as_str())
    }

    /// A client takes its tool back, or declares it again; returns which.
    pub(super) fn toggle_withdrawn(&mut self, name: &ToolName) -> bool {
        let Some(tool) = self.tools.iter_mut().find(|tool| tool.name == *name) else { return false };
        tool.is_withdrawn = !tool.is_withdrawn;
        tool.is_withdrawn
    }

    pub(super) fn is_withdrawn(&self, name: &ToolName) -> bool {
        self.tools.iter().any(|tool| tool.name == *name && tool.is_withdrawn)
    }

    /// A client may be offered a call of a tool that it declares, as the log knows it.
    pub(super) fn check_offer(&self, call: &CallId) -> Result<(), BrokenInvariant> {
        let name = self.calls.get(call).and_then(|call| call.tool.as_ref());
        let tool = self.tools.iter().find(|tool| Some(&tool.name) == name);
        ensure(tool.is_some_and(|tool| !tool.is_withdrawn && tool.current == tool.reported), || {
            format!("{call} is offered to a client that declares its tool otherwise, or no more")
        })
    }

    /// Records an input of a person, independently of the machine's reaction.
    pub(super) fn record_input(&mut self, input: &TurnInput) {
        let TurnInput::Approval { question, decision, arguments_hash, arguments, remember, stop, .. } = input
        else {
            return;
        };
        let questions = match question {
            ApprovalTarget::One(id) => vec![id.clone()],
            ApprovalTarget::All => self.open_questions(|_| true),
        };
        self.given_answers.extend(questions.into_iter().map(|question| GivenAnswer {
            question,
            decision: *decision,
            hash: arguments_hash.clone(),
            arguments: arguments.clone(),
            remember: remember.clone(),
            stop: *stop,
        }));
    }

    fn open_questions(&self, of: impl Fn(&SimCall) -> bool) -> Vec<ApprovalId> {
        let calls = self.calls.values().filter(|call| of(call));
        let open = calls.flat_map(|call| call.asked.iter().filter(|asked| asked.open));
        open.map(|asked| asked.id.clone()).collect()
    }

    /// A question is open that never expires.
    pub(super) fn waits_forever(&self) -> bool {
        self.confirm == ConfirmMode::Manual && !self.open_questions(|_| true).is_empty()
    }

    /// Open questions about calls that have the same id of the upstream as the call of this question.
    pub(super) fn questions_with_same_upstream_id(&self, question: &ApprovalId) -> Vec<ApprovalId> {
        let call = self.calls.values().find(|call| call.asked.iter().any(|asked| asked.id == *question));
        match call.and_then(|call| call.upstream_id.as_ref()) {
            Some(theirs) => {
                let mut namesakes = self.open_questions(|call| call.upstream_id.as_ref() == Some(theirs));
                namesakes.retain(|other| other != question);
                namesakes
            }
            None => Vec::new(),
        }
    }

    // --- the log ---

    pub(super) fn event(&mut self, event: &Event) -> Result<(), BrokenInvariant> {
        if let EventKind::ToolRedefined { tool_name, fingerprint, attempt, .. } = &event.kind {
            let tool = self.tools.iter_mut().find(|tool| tool.name == *tool_name);
            let tool = tool.ok_or_else(|| format!("{tool_name} is redefined and nobody offers it"))?;
            let was = tool.current.starts_with(fingerprint.as_str());
            ensure(was, || format!("{tool_name} never was {fingerprint}"))?;
            tool.reported = fingerprint.clone();
            self.redefined += u64::from(attempt.is_some());
        }
        let Some(id) = &event.tool_id else { return Ok(()) };
        if let EventKind::ToolUse { wire_name, upstream_id, .. } = &event.kind {
            let tool = self.tools.iter().find(|tool| tool.wire_name == *wire_name);
            let tool = tool.map(|tool| tool.name.clone());
            let call = SimCall { tool, upstream_id: upstream_id.clone(), ..SimCall::default() };
            self.calls.insert(id.clone(), call);
            return Ok(());
        }
        let Some(call) = self.calls.get_mut(id) else { return Ok(()) };
        match &event.kind {
            EventKind::ToolInput(input) => call.arguments = input.arguments.clone(),
            EventKind::ToolInputReset => {
                call.arguments = None;
                call.asked.clear();
            }
            EventKind::ToolRedefined { .. } => call.asked.iter_mut().for_each(|asked| asked.open = false),
            EventKind::ApprovalRequest {
                approval_id,
                kind: QuestionKind::Call,
                arguments_hash,
                fingerprint,
                ..
            } => {
                let shown = call.arguments.clone().ok_or_else(|| format!("{id} asks without arguments"))?;
                let tool = self.tools.iter().find(|tool| Some(&tool.name) == call.tool.as_ref());
                ensure(tool.is_some_and(|tool| tool.reported == *fingerprint), || {
                    format!("{id} asks about another definition: {fingerprint}")
                })?;
                let first = self.hashes.entry(arguments_hash.clone()).or_insert_with(|| shown.clone());
                ensure(*first == shown, || format!("{id}: one hash for {first} and {shown}"))?;
                ensure(call.asked.iter().all(|asked| !asked.open), || format!("{id} asks twice at once"))?;
                call.asked.push(AskedQuestion {
                    id: approval_id.clone(),
                    hash: arguments_hash.clone(),
                    fingerprint: fingerprint.clone(),
                    shown,
                    open: true,
                    approved: None,
                });
            }
            // An answer to a running tool approves nothing.
            EventKind::ApprovalResolved { answer: None, .. } => self.check_resolution(id, &event.kind)?,
            EventKind::ToolStart { .. } => self.check_intent(id)?,
            _ => {}
        }
        Ok(())
    }

    /// Checks an answer in the log: a person must have given it.
    fn check_resolution(&mut self, id: &CallId, kind: &EventKind) -> Result<(), BrokenInvariant> {
        let EventKind::ApprovalResolved { approval_id, decision, by, arguments, remembered, stop, .. } = kind
        else {
            return Ok(());
        };
        let call = self.calls.get(id).ok_or("an answer about no call")?;
        let tool = call.tool.clone().ok_or("an answer about no tool")?;
        let at = call.asked.iter().position(|asked| asked.open && asked.id == *approval_id);
        let at = at.ok_or_else(|| format!("{approval_id} is answered and not open"))?;
        let asked = &call.asked[at];
        let with = arguments.clone().unwrap_or_else(|| asked.shown.clone());
        match by.as_str() {
            "person" => {
                let was_given = |given: &&GivenAnswer| {
                    given.question == *approval_id
                        && given.decision == *decision
                        && given.stop == *stop
                        && given.hash.as_ref().is_none_or(|hash| *hash == asked.hash)
                        && match (decision, &given.arguments) {
                            (ApprovalDecision::Approve, Some(edited)) => *edited == with,
                            (ApprovalDecision::Approve, None) => arguments.is_none(),
                            (ApprovalDecision::Deny, _) => arguments.is_none(),
                        }
                        && match (&given.remember, remembered) {
                            (_, None) => true,
                            (None, Some(_)) => false,
                            (Some(wanted), Some(stored)) => wanted.scope == stored.scope,
                        }
                };
                let given = self.given_answers.iter().find(was_given);
                let given = given.ok_or_else(|| format!("{approval_id}: nobody said {decision:?}"))?;
                if let (Some(stored), Some(wanted)) = (remembered, &given.remember) {
                    let bound = stored.tool == tool
                        && stored.fingerprint == asked.fingerprint
                        && stored.decision == *decision;
                    ensure(bound, || format!("{approval_id}: something else is kept: {stored:?}"))?;
                    let arguments = match &wanted.constraints {
                        ArgumentConstraints::Any => SimConstraint::Any,
                        ArgumentConstraints::Exact => SimConstraint::Exactly(with.clone()),
                        ArgumentConstraints::Arguments(tests) => SimConstraint::Q(
                            tests
                                .values()
                                .find_map(|test| match test {
                                    ArgumentTest::Equals(q) => q.as_str().map(ToOwned::to_owned),
                                    _ => None,
                                })
                                .unwrap_or_default(),
                        ),
                    };
                    let fingerprint = stored.fingerprint.clone();
                    let decision = *decision;
                    self.turn_decisions.push(SimRemembered {
                        decision,
                        tool: tool.clone(),
                        fingerprint,
                        arguments,
                    });
                    self.remembered += 1;
                }
            }
            "remembered" if *decision == ApprovalDecision::Approve => {
                let fits =
                    self.is_remembered(ApprovalDecision::Approve, &tool, &asked.fingerprint, &asked.shown);
                ensure(fits, || format!("{approval_id}: nothing that is kept answers it"))?;
            }
            by => {
                ensure(*decision == ApprovalDecision::Deny, || format!("{approval_id} is approved by {by}"))?
            }
        }
        let call = self.calls.get_mut(id).ok_or("an answer about no call")?;
        self.edited += u64::from(arguments.is_some());
        call.asked[at].open = false;
        call.asked[at].approved = (*decision == ApprovalDecision::Approve).then(|| with.clone());
        call.arguments = Some(with);
        Ok(())
    }

    /// Checks an intended start: a call that a person refused permanently starts only if a person has
    /// approved this very call.
    fn check_intent(&self, id: &CallId) -> Result<(), BrokenInvariant> {
        let Some((call, tool, arguments)) = self.call_parts(id) else { return Ok(()) };
        let approved = is_approved(call, &tool.reported, arguments);
        let refused = self.is_remembered(ApprovalDecision::Deny, &tool.name, &tool.reported, arguments);
        ensure(approved || !refused, || format!("{id} starts although a person refused it for good"))
    }

    /// A tool really starts, with these arguments and the definition that it has now.
    pub(super) fn check_start(&self, id: &CallId, arguments: &CallArguments) -> Result<(), BrokenInvariant> {
        let (call, tool, meant) =
            self.call_parts(id).ok_or_else(|| format!("{id} starts and nobody knows it"))?;
        let with = &arguments.value;
        ensure(with == meant, || format!("{id} starts with {with}, not with {meant}"))?;
        ensure(with["q"] != REFUSED_Q, || format!("{id} starts with arguments that no tool takes"))?;
        let rule = self.rules.iter().find(|rule| rule.matches(&tool.name, with)).map(|rule| rule.decide);
        ensure(rule != Some(RuleAction::Deny), || format!("{id} starts against a rule that denies"))?;
        if is_approved(call, &tool.current, with) || self.approval == ApprovalRule::ApproveAll {
            return Ok(());
        }
        let asks_always = self.confirm == ConfirmMode::Manual || tool.permission == PermissionRule::Ask;
        let remembered = self.is_remembered(ApprovalDecision::Approve, &tool.name, &tool.current, with);
        let harmless = matches!(tool.effect, Effect::Pure | Effect::Read | Effect::Cosmetic);
        let by_rule = match rule {
            Some(decide) => decide == RuleAction::Allow,
            None => harmless,
        };
        let unasked = by_rule && tool.current == tool.offered && self.confirm != ConfirmMode::Everything;
        ensure(!asks_always && (remembered || unasked), || {
            format!("{id} ({} as {}) starts with {with} and nobody allowed it", tool.name, tool.current)
        })
    }

    fn call_parts(&self, id: &CallId) -> Option<(&SimCall, &SimTool, &Value)> {
        let call = self.calls.get(id)?;
        let tool = self.tools.iter().find(|tool| Some(&tool.name) == call.tool.as_ref())?;
        Some((call, tool, call.arguments.as_ref()?))
    }

    fn is_remembered(
        &self,
        decision: ApprovalDecision,
        tool: &ToolName,
        fingerprint: &str,
        arguments: &Value,
    ) -> bool {
        let decisions = self.past_decisions.iter().chain(&self.turn_decisions);
        decisions
            .filter(|past| past.decision == decision)
            .any(|past| past.matches(tool, fingerprint, arguments))
    }
}

/// True if a person approved this very call: this definition, these arguments.
fn is_approved(call: &SimCall, fingerprint: &str, arguments: &Value) -> bool {
    call.asked
        .iter()
        .any(|asked| asked.fingerprint == fingerprint && asked.approved.as_ref() == Some(arguments))
}
