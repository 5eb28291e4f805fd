//! A scenario is prose: one input a line, and the log as it reads.
//!
//! The first line of a script sets the turn up; each other line is one input, or a pause (`+300`, milliseconds):
//!
//! ```text
//! tools weather:read calendar:write face:cosmetic; eager; serial; ask
//! text 好的
//! open A weather            a call appears in slot A
//! args A {"city":           a fragment
//! seal A {"city":"北京"}    explicit seal; `balanced A ..`, `broken A ..`, `orphan A ..`, `reopen A`
//! finish tool_calls         Finish, then StreamEnd(Complete); `cut` = StreamEnd(Truncated), `error text` = StreamEnd(Error)
//! ok A 晴                   the tool ends; `fail A reason`, `hang A` (its timer), `progress A text`
//! asks A text               the running tool asks for values, or `asks A text at https://..`; `accept A {..} | decline A`
//! client A {..}             the client that runs it answers
//! say text | later text      the user sends a message for the next step, or for after the turn; `unsay 1` takes the first back
//! edit A {"city":"上海"}     approved with these arguments; `stale A` = approved for arguments that are no more
//! keep turn any A | refuse turn exact A   approved or denied and remembered; constraints: exact, any, or JSON
//! redefine weather f2       the tool has another definition; `unmade A f2` = and the start of A was not made
//! declares page f2          a client declares its tool otherwise, which the next check finds; `withdraws page`
//! approve all | approve A | deny A reason | deny-and-stop A reason | cancel | cancel A | http 429 2000 | timer retry | too long
//! invalid A message         the next schema check of A fails; `slow A` = it is answered by `checked A`, and perhaps `held A 60000` for a client
//! log was slow              the log took its time
//! ```

use std::collections::BTreeMap;
use throughline_engine::{
    ApprovalDecision, ApprovalId, ApprovalRule, ApprovalTarget, ArgumentValidation, BlockStart, CallProgress,
    CallRunner, ConfirmMode, Effect, ElicitationMode, Event, EventKind, ExecutionMode, FailureKind,
    MessageTiming, OfferedTool, OnInterrupted, PermissionRule, PollingMode, QuestionKind, QueuedMessage,
    RememberRequest, StartRule, TimerId, ToolAnswer, ToolConcurrency, ToolQuestion, Turn, TurnAction,
    TurnInput, TurnOutput, TurnSetup, TurnStart, UnixMillis, UpstreamChoice, UpstreamFailure, UserMessageId,
    fold,
};
use throughline_wire::{
    BrokenCall, CallArguments, CallId, CallKind, CallOutcome, CallSlot, ModelRequest, RawArguments,
    SealEvidence, StepEvent, StreamEnd, ToolChoice, ToolName, ToolOutput, UpstreamCallId, UpstreamError,
    Usage, UserPart, WireName,
};

/// A turn with all of its output.
pub struct ScriptedTurn {
    pub turn: Turn,
    pub now: UnixMillis,
    pub log: Vec<Event>,
    pub requests: Vec<ModelRequest>,
    pub timers: Vec<(UnixMillis, TimerId)>,
    /// Starts without an end, in order.
    pub running: Vec<(CallId, u32)>,
    pub lines: Vec<String>,
    /// The data stored apart from the log.
    pub provider_states: Vec<throughline_engine::StepProviderState>,
    labels: BTreeMap<String, CallId>,
    invalid: BTreeMap<String, String>,
    /// Tools that their client declares otherwise by now; `None` = no more.
    declared: BTreeMap<ToolName, Option<String>>,
    /// Slow checks: by label, and the input to answer once it was requested.
    slow: BTreeMap<String, Option<TurnInput>>,
    model: (u32, u32),
    /// Messages sent in mid-turn.
    messages_sent: u32,
    /// The setup of the turn.
    pub setup: TurnSetup,
    /// Checks of arguments, by label.
    pub checks: Vec<String>,
    /// Starts of tools: label and argument text.
    pub started: Vec<(String, String)>,
    /// Number of questions that tools asked.
    questions: u64,
    /// Called after each input, with the log so far.
    pub after: Option<fn(&ScriptedTurn)>,
}

pub const START: UnixMillis = 1_000_000;

pub fn tool(name: &str, effect: Effect) -> OfferedTool {
    OfferedTool { fingerprint: "f1".into(), ..OfferedTool::new(name, effect) }
}

pub fn setup(words: &str) -> TurnSetup {
    let mut setup = TurnSetup {
        agent: "default".into(),
        mode: "native".into(),
        upstreams: vec![UpstreamChoice { name: "up".into(), model: "m".into() }],
        ..TurnSetup::default()
    };
    for part in words.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let mut words = part.split_whitespace();
        match words.next().unwrap_or_default() {
            "tools" => setup.tools = words.map(offered).collect(),
            "eager" => setup.start = StartRule::Eager,
            "force" => {
                setup.tool_choice =
                    words.next().map_or(ToolChoice::Required, |name| ToolChoice::Tool(name.into()));
            }
            "barrier" => setup.start = StartRule::AfterStream,
            "serial" => setup.execution = ExecutionMode::Serial,
            "parallel" => setup.execution = ExecutionMode::Parallel,
            "ask" => setup.approval = ApprovalRule::Ask,
            "approve" => setup.approval = ApprovalRule::ApproveAll,
            "nobody" => setup.approval = ApprovalRule::DenyAll { reason: "nobody to ask".into() },
            "continue" => setup.on_interrupted = OnInterrupted::Continue,
            "fallback" => setup.upstreams.push(UpstreamChoice { name: "up2".into(), model: "m2".into() }),
            "rule" => setup.policy.rules.push(json(words)),
            "remembered" => setup.remembered.push(json(words)),
            "confirm" => setup.policy.confirm = ConfirmMode::Everything,
            "manual" => setup.policy.confirm = ConfirmMode::Manual,
            "iterations" => setup.limits.iterations_max = words.next().unwrap().parse().unwrap(),
            other => panic!("no such setting: {other}"),
        }
    }
    setup
}

fn json<'w, T: serde::de::DeserializeOwned>(words: impl Iterator<Item = &'w str>) -> T {
    let text = words.collect::<Vec<_>>().join(" ");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn offered(word: &str) -> OfferedTool {
    let mut parts = word.split(':');
    let name = parts.next().unwrap();
    let effect = match parts.next() {
        Some("pure") => Effect::Pure,
        Some("read") => Effect::Read,
        Some("cosmetic") => Effect::Cosmetic,
        Some("idempotent") => Effect::Idempotent,
        Some("write") => Effect::Write,
        _ => Effect::External,
    };
    let mut tool = tool(name, effect);
    for more in parts {
        match more {
            "alone" => tool.concurrency = ToolConcurrency::Alone,
            "asks" => tool.permission = PermissionRule::Ask,
            "poller" => tool.polling = PollingMode::Poller,
            "client" => tool.runs = CallRunner::Client { client_id: Some("page".into()) },
            "nobody" => tool.runs = CallRunner::Client { client_id: None },
            "own" => tool.runs = CallRunner::Requester,
            class => tool.concurrency = ToolConcurrency::Class(class.into()),
        }
    }
    tool
}

pub fn start() -> TurnStart {
    TurnStart {
        turn_id: "t".into(),
        message_id: "m".into(),
        nonce: 1,
        input: vec![UserPart::Text { text: "hi".into() }],
        ..TurnStart::default()
    }
}

/// Additions of an answer to yes and no.
#[derive(Default)]
struct AnswerExtras {
    hash: Option<String>,
    arguments: Option<serde_json::Value>,
    remember: Option<RememberRequest>,
    stop: bool,
}

impl ScriptedTurn {
    pub fn new(setup: TurnSetup) -> Self {
        let mut out = TurnOutput::default();
        let turn = Turn::new(setup.clone(), start(), START, &mut out);
        let mut scripted = ScriptedTurn {
            turn,
            now: START,
            log: Vec::new(),
            requests: Vec::new(),
            timers: Vec::new(),
            running: Vec::new(),
            lines: Vec::new(),
            provider_states: Vec::new(),
            labels: BTreeMap::new(),
            invalid: BTreeMap::new(),
            declared: BTreeMap::new(),
            checks: Vec::new(),
            slow: BTreeMap::new(),
            model: (0, 0),
            messages_sent: 0,
            setup,
            started: Vec::new(),
            questions: 0,
            after: None,
        };
        scripted.take(out);
        scripted
    }

    /// Runs a script to its end.
    pub fn run(script: &str) -> Self {
        Self::run_with(script, None)
    }

    pub fn run_with(script: &str, after: Option<fn(&ScriptedTurn)>) -> Self {
        let mut lines =
            script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut scripted = Self::new(setup(lines.next().unwrap_or_default()));
        scripted.after = after;
        for line in lines {
            scripted.line(line);
        }
        scripted
    }

    pub fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (who, tail) = rest.split_once(' ').unwrap_or((rest, ""));
        let slot = CallSlot(who.bytes().next().map_or(0, |byte| u32::from(byte.wrapping_sub(b'A'))));
        match word {
            "text" => self.model(StepEvent::Text(rest.to_owned().into())),
            "think" => self.model(StepEvent::Thinking(rest.to_owned().into())),
            "usage" => self.model(StepEvent::Usage(Usage { input_tokens: Some(1), ..Usage::default() })),
            "refusal" => self.model(StepEvent::Refusal(rest.to_owned().into())),
            "open" => {
                // `open A weather as X`: with this id of the upstream's.
                let (name, theirs) = tail.split_once(" as ").map_or((tail, None), |(n, id)| (n, Some(id)));
                self.model(StepEvent::CallOpened {
                    slot,
                    position: slot.0,
                    upstream_id: Some(UpstreamCallId::new(theirs.unwrap_or(&format!("u{who}")))),
                    name: WireName::new(name),
                    kind: CallKind::Function,
                    arguments: None,
                });
                let id = self.log.iter().rev().find_map(|event| match event.kind {
                    EventKind::ToolUse { .. } => event.tool_id.clone(),
                    _ => None,
                });
                self.labels.insert(who.into(), id.expect("a tool_use"));
            }
            "args" => self.model(StepEvent::CallArguments { slot, delta: tail.to_owned().into() }),
            "seal" => self.seal(slot, SealEvidence::Explicit, tail),
            "balanced" => self.seal(slot, SealEvidence::Balanced, tail),
            "terminal" => self.seal(slot, SealEvidence::Terminal, tail),
            "reopen" => self.model(StepEvent::CallReopened { slot }),
            "broken" => {
                let why = BrokenCall::InvalidJson { message: "unexpected end".into() };
                self.model(StepEvent::CallBroken { slot, reason: why, raw: RawArguments(tail.into()) });
            }
            // Fragments of arguments that no call owns.
            "orphan" => {
                self.line(&format!("open {who} "));
                self.model(StepEvent::CallBroken {
                    slot,
                    reason: BrokenCall::Nameless,
                    raw: RawArguments(tail.into()),
                });
            }
            "finish" => {
                let reason = serde_json::from_value(rest.into()).expect("a finish reason");
                self.model(StepEvent::Finish { reason, raw: Some(rest.into()) });
                self.model(StepEvent::End(StreamEnd::Complete));
            }
            "complete" => self.model(StepEvent::End(StreamEnd::Complete)),
            "cut" => self.model(StepEvent::End(StreamEnd::Truncated)),
            "error" => {
                let error = UpstreamError { message: rest.into(), ..UpstreamError::default() };
                self.model(StepEvent::End(StreamEnd::Error(error)));
            }
            "ok" => self.ended(who, CallOutcome::Done(ToolOutput::text(tail))),
            "fail" => self.ended(who, CallOutcome::Failed { message: tail.into(), partial: None }),
            "outcome" => self.ended(who, serde_json::from_str(tail).expect("an outcome")),
            "progress" => {
                let (call, attempt) = self.start_of(who);
                let progress = CallProgress { output_delta: Some(tail.into()), ..CallProgress::default() };
                self.apply(TurnInput::ToolProgress { call, attempt, progress });
            }
            "hang" => {
                let (call, attempt) = self.start_of(who);
                self.fire_timer(&TimerId::Tool { call, attempt });
            }
            "grace" => {
                let (call, attempt) = self.start_of(who);
                self.fire_timer(&TimerId::CancelGrace { call, attempt });
            }
            "approve" => self.answer(who, ApprovalDecision::Approve, None, |_| ()),
            "deny" => {
                let reason = Some(tail.to_owned()).filter(|tail| !tail.is_empty());
                self.answer(who, ApprovalDecision::Deny, reason, |_| ());
            }
            "deny-and-stop" => {
                let reason = Some(tail.to_owned()).filter(|tail| !tail.is_empty());
                self.answer(who, ApprovalDecision::Deny, reason, |extras| extras.stop = true);
            }
            "stale-stop" => self.answer(who, ApprovalDecision::Deny, None, |extras| {
                (extras.hash, extras.stop) = (Some("other".into()), true);
            }),
            "approve-and-stop" => {
                self.answer(who, ApprovalDecision::Approve, None, |extras| extras.stop = true)
            }
            "edit" => self.answer(who, ApprovalDecision::Approve, None, |extras| {
                extras.arguments = Some(serde_json::from_str(tail).expect("arguments"));
            }),
            "stale" => {
                self.answer(who, ApprovalDecision::Approve, None, |extras| extras.hash = Some("other".into()))
            }
            "keep" | "refuse" => {
                let (constraints, label) = tail.rsplit_once(' ').expect("constraints and a label");
                let constraints =
                    serde_json::from_str(constraints).or(serde_json::from_value(constraints.into()));
                let remember = RememberRequest {
                    scope: serde_json::from_value(who.into()).expect("a scope"),
                    constraints: constraints.expect("constraints"),
                };
                let decision =
                    if word == "keep" { ApprovalDecision::Approve } else { ApprovalDecision::Deny };
                self.answer(label, decision, None, |extras| extras.remember = Some(remember));
            }
            "redefine" => {
                let (tool, fingerprint) = (ToolName::new(who), tail.to_owned());
                self.apply(TurnInput::ToolRedefined { tool, fingerprint, start: None });
            }
            "declares" => drop(self.declared.insert(ToolName::new(who), Some(tail.to_owned()))),
            "withdraws" => drop(self.declared.insert(ToolName::new(who), None)),
            "unmade" => {
                let start = self.start_of(who);
                let name = self.log.iter().find_map(|event| match &event.kind {
                    EventKind::ToolUse { tool_name, .. } if event.tool_id.as_ref() == Some(&start.0) => {
                        Some(tool_name.clone())
                    }
                    _ => None,
                });
                let (tool, fingerprint) = (name.expect("a tool"), tail.to_owned());
                self.apply(TurnInput::ToolRedefined { tool, fingerprint, start: Some(start) });
            }
            "asks" => {
                let (call, attempt) = self.start_of(who);
                self.questions += 1;
                let wants = match tail.split_once(" at ") {
                    Some((_, url)) => ElicitationMode::Url { url: url.into() },
                    None => ElicitationMode::Form { schema: serde_json::json!({"type": "object"}) },
                };
                let message = tail.split(" at ").next().unwrap_or_default().to_owned();
                let question = ToolQuestion { message, mode: wants };
                self.apply(TurnInput::ToolQuestionAsked {
                    call,
                    attempt,
                    question_id: self.questions,
                    question,
                });
            }
            "accept" => {
                let content = Some(tail).filter(|tail| !tail.is_empty());
                let content = content.map(|content| serde_json::from_str(content).expect("JSON"));
                self.reply(who, ToolAnswer::Accept { content });
            }
            "decline" => self.reply(who, ToolAnswer::Decline),
            "client" => {
                let (call, attempt) = self.start_of(who);
                let answer = serde_json::from_str(tail).expect("a client's answer");
                self.apply(TurnInput::ClientAnswered { call, attempt: Some(attempt), answer });
            }
            "say" => self.say(MessageTiming::NextStep, rest),
            "later" => self.say(MessageTiming::AfterTurn, rest),
            "again" => self.apply(TurnInput::UserMessage(QueuedMessage {
                id: UserMessageId::new(format!("u{who}")),
                input: parts(tail),
                when: MessageTiming::NextStep,
            })),
            "unsay" => self.apply(TurnInput::RetractMessage { id: UserMessageId::new(format!("u{who}")) }),
            "cancel" if who.is_empty() => self.apply(TurnInput::Cancel),
            "cancel" => self.apply(TurnInput::CancelCall { call: self.labels[who].clone() }),
            "http" => {
                let status: u16 = who.parse().expect("a status");
                let kind = match status {
                    429 => FailureKind::RateLimited,
                    401 => FailureKind::Unauthorized,
                    _ => FailureKind::Status,
                };
                self.failed(kind, Some(status), tail.parse().ok());
            }
            "unsupported" => self.failed(FailureKind::ToolsUnsupported, Some(400), None),
            "too" => self.failed(FailureKind::ContextTooLong, Some(400), None),
            "broke" => self.failed(FailureKind::Broken, None, None),
            "timer" => {
                let id = self.timers.iter().rev().map(|(_, id)| id).find(|id| match id {
                    TimerId::Retry { .. } => rest == "retry",
                    TimerId::Approval(_) => rest == "approval",
                    TimerId::ModelSilence { .. } => rest == "silence",
                    TimerId::RemoteCall { .. } => rest == "elsewhere",
                    TimerId::HeldCheck { .. } => rest == "held",
                    _ => false,
                });
                let id = id.cloned().expect("such a timer");
                self.fire_timer(&id);
            }
            "log" => self.apply(TurnInput::LogDelayed { ms: 1_500 }),
            "slow" => drop(self.slow.insert(who.into(), None)),
            "held" => {
                let until = self.now + tail.parse::<i64>().expect("milliseconds");
                let Some(Some(TurnInput::Validated { call, version, .. })) = self.slow.get(who) else {
                    panic!("a check");
                };
                let (call, version) = (call.clone(), *version);
                self.apply(TurnInput::CheckHeld { call, version, until });
            }
            "checked" => {
                let answer = self.slow.remove(who).flatten().expect("a check");
                self.apply(answer);
            }
            "invalid" => {
                self.invalid.insert(who.into(), tail.into());
            }
            pause if pause.starts_with('+') => self.now += pause[1..].parse::<i64>().expect("milliseconds"),
            other => panic!("no such line: {other}"),
        }
    }

    /// Last question that a call asked.
    fn asked(&self, label: &str) -> ApprovalId {
        let id = self.current(label);
        let asked = self.log.iter().rev().find_map(|event| match &event.kind {
            EventKind::ApprovalRequest { approval_id, .. } if event.tool_id.as_ref() == Some(&id) => {
                Some(approval_id.clone())
            }
            _ => None,
        });
        asked.unwrap_or_else(|| "nothing".into())
    }

    fn reply(&mut self, who: &str, answer: ToolAnswer) {
        let question = self.asked(who);
        self.apply(TurnInput::ToolQuestionAnswered { question, answer, by: "user".into() });
    }

    fn say(&mut self, when: MessageTiming, text: &str) {
        self.messages_sent += 1;
        let id = UserMessageId::new(format!("u{}", self.messages_sent));
        self.apply(TurnInput::UserMessage(QueuedMessage { id, input: parts(text), when }));
    }

    fn seal(&mut self, slot: CallSlot, seal: SealEvidence, arguments: &str) {
        let value = serde_json::from_str(arguments).expect("arguments");
        let arguments = CallArguments { text: arguments.into(), value, repairs: Vec::new() };
        self.model(StepEvent::CallSealed { slot, seal, arguments });
    }

    fn failed(&mut self, kind: FailureKind, status: Option<u16>, retry_after_ms: Option<u64>) {
        let failure = UpstreamFailure { kind, status, message: "no".into(), retry_after_ms };
        let (step, attempt) = self.model;
        self.apply(TurnInput::ModelFailed { step, attempt, failure, time_left_ms: None });
    }

    fn start_of(&self, label: &str) -> (CallId, u32) {
        let id = self.current(label);
        self.running.iter().rev().find(|(call, _)| *call == id).cloned().unwrap_or((id, 1))
    }

    /// The call with a label: the last one that replaced it.
    fn current(&self, label: &str) -> CallId {
        let mut id = self.labels[label].clone();
        for event in &self.log {
            if let EventKind::ToolUse { supersedes: Some(old), .. } = &event.kind
                && *old == id
            {
                id = event.tool_id.clone().expect("an id");
            }
        }
        id
    }

    fn ended(&mut self, label: &str, outcome: CallOutcome) {
        let (call, attempt) = self.start_of(label);
        self.apply(TurnInput::ToolEnded { call, attempt, outcome });
    }

    fn answer(
        &mut self,
        who: &str,
        decision: ApprovalDecision,
        reason: Option<String>,
        more: impl FnOnce(&mut AnswerExtras),
    ) {
        let mut extras = AnswerExtras::default();
        more(&mut extras);
        let AnswerExtras { hash: arguments_hash, arguments, remember, stop } = extras;
        let question = match who {
            "all" => ApprovalTarget::All,
            label => ApprovalTarget::One(self.asked(label)),
        };
        let by = "user".into();
        self.apply(TurnInput::Approval {
            question,
            decision,
            by,
            reason,
            arguments_hash,
            arguments,
            remember,
            stop,
        });
    }

    fn fire_timer(&mut self, id: &TimerId) {
        let due =
            self.timers.iter().rev().find(|(_, timer)| timer == id).map(|(at, _)| *at).expect("such a timer");
        self.now = self.now.max(due);
        self.apply(TurnInput::Timer { id: id.clone() });
    }

    /// Fires the timers of running tools, in order, until none is left that changes anything; returns the
    /// time of the last.
    pub fn fire_tool_timers(&mut self) -> UnixMillis {
        let mut fired = 0;
        while let Some(at) = self.timers.iter().position(|(_, id)| matches!(id, TimerId::Tool { .. }))
            && !self.lines.iter().any(|line| line.starts_with("result"))
        {
            let (due, id) = self.timers.remove(at);
            self.now = self.now.max(due);
            fired = self.now;
            self.apply(TurnInput::Timer { id });
        }
        fired
    }

    /// A takeover by another process, from the log.
    pub fn restarted(&self, script: &str, epoch: u64) -> Self {
        self.restarted_with(script, epoch, |_| {})
    }

    /// A takeover; `meanwhile` happens before the new process checks anything.
    pub fn restarted_with(&self, script: &str, epoch: u64, meanwhile: impl FnOnce(&mut Self)) -> Self {
        let words = script.lines().next().unwrap_or_default();
        let mut scripted = Self::new(setup(words));
        scripted.turn = Turn::restore(setup(words), start(), &self.log, &self.provider_states);
        (scripted.now, scripted.model) = (self.now, self.model);
        scripted.log.clone_from(&self.log);
        scripted.labels.clone_from(&self.labels);
        scripted.lines.clear();
        scripted.timers.clear();
        meanwhile(&mut scripted);
        let mut out = TurnOutput::default();
        scripted.turn.resume(epoch, scripted.now, &mut out);
        scripted.take(out);
        scripted
    }

    pub fn model(&mut self, event: StepEvent<'static>) {
        let (step, attempt) = self.model;
        self.apply(TurnInput::Model { step, attempt, event });
    }

    pub fn apply(&mut self, input: TurnInput) {
        let mut out = TurnOutput::default();
        self.turn.apply(input, self.now, &mut out);
        self.take(out);
        if let Some(after) = self.after {
            after(self);
        }
    }

    pub fn take(&mut self, out: TurnOutput) {
        for event in &out.events {
            self.lines.extend(self.render(event));
        }
        self.log.extend(out.events);
        self.provider_states.extend(out.provider_states);
        let mut answers = Vec::new();
        for action in out.actions {
            match action {
                TurnAction::CallModel { step, attempt, request, .. } => {
                    self.model = (step, attempt);
                    self.requests.push(*request);
                }
                TurnAction::AbortModel { .. } => self.lines.push("! abort model".into()),
                TurnAction::Validate { call, version, tool, fingerprint, .. } => {
                    let label = self.label(Some(&call));
                    self.checks.push(label.clone());
                    let verdict = |validation| TurnInput::Validated { call, version, validation };
                    let answer = match (self.declared.get(&tool), self.invalid.remove(&label)) {
                        (Some(None), _) => verdict(ArgumentValidation::NoViewer),
                        (Some(Some(now)), _) if fingerprint.is_some_and(|decided| decided != *now) => {
                            TurnInput::ToolRedefined { tool, fingerprint: now.clone(), start: None }
                        }
                        (_, Some(message)) => verdict(ArgumentValidation::Invalid { message }),
                        (_, None) => verdict(ArgumentValidation::Valid),
                    };
                    match self.slow.get_mut(&label) {
                        Some(waiting) => *waiting = Some(answer),
                        None => answers.push(answer),
                    }
                }
                TurnAction::StartTool { call, attempt, arguments, .. } => {
                    self.started.push((self.label(Some(&call)), arguments.text));
                    self.running.push((call, attempt));
                }
                TurnAction::CancelTool { call, attempt } => {
                    self.lines.push(format!("! cancel {} {attempt}", self.label(Some(&call))));
                }
                TurnAction::OfferCall { call, attempt, client_id, .. } => {
                    let again = again(attempt);
                    self.lines.push(format!("! offer {} to {client_id}{again}", self.label(Some(&call))));
                    self.running.push((call, attempt));
                }
                TurnAction::AnswerTool { call, question_id, answer, .. } => {
                    let answer = serde_json::to_value(answer).expect("JSON");
                    let content = answer.get("content").map(|content| format!(" {content}"));
                    let (label, content) = (self.label(Some(&call)), content.unwrap_or_default());
                    let action = answer["action"].as_str().unwrap_or_default();
                    self.lines.push(format!("! tell {label} {question_id} {action}{content}"));
                }
                TurnAction::SetTimer { id, at } => self.timers.push((at, id)),
            }
        }
        for answer in answers {
            self.apply(answer);
        }
    }

    fn label(&self, id: Option<&CallId>) -> String {
        let Some(id) = id else { return String::new() };
        // `t.1` is A, `t.2` is B: by order of appearance in the turn.
        let ordinal: u8 = id.as_str().rsplit('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        char::from(b'A' + ordinal.saturating_sub(1)).to_string()
    }

    /// One event as a line; fields that are always present and add nothing are left out.
    fn render(&self, event: &Event) -> Option<String> {
        let id = self.label(event.tool_id.as_ref());
        Some(match &event.kind {
            EventKind::StreamStart { .. } | EventKind::BlockEnd | EventKind::SessionStats(_) => return None,
            EventKind::StepStart { model, attempt, tools_offered, .. } => {
                let tools = if tools_offered.is_empty() { " no tools" } else { "" };
                format!("step {} {model} try {attempt}{tools}", event.step.unwrap_or(0))
            }
            EventKind::StepEnd { finish, .. } => match finish {
                Some(finish) => format!("step end {}", word(finish)),
                None => "step end".into(),
            },
            EventKind::BlockStart(BlockStart::Notice { code, .. }) => format!("notice {code}"),
            EventKind::BlockStart(BlockStart::Error(fault)) => format!("error block {}", fault.code),
            EventKind::BlockStart(BlockStart::Text { code: Some(code) }) => format!("block {code}"),
            EventKind::BlockStart(_) => return None,
            EventKind::ContentDelta { text, .. } => format!("text {text}"),
            EventKind::Thinking { text, .. } => format!("thinking {text}"),
            EventKind::ToolUse { tool_name, supersedes, .. } => match supersedes {
                Some(old) => format!("use {id} {tool_name} instead of {}", self.label(Some(old))),
                None => format!("use {id} {tool_name}").trim_end().to_owned(),
            },
            EventKind::ToolInputDelta { .. } => return None,
            EventKind::ToolInputReset => format!("reset {id}"),
            EventKind::ToolInput(input) => match (&input.arguments, &input.raw) {
                (Some(value), _) => format!("input {id} {value}"),
                (None, raw) => format!("broken {id} {}", raw.clone().unwrap_or_default()),
            },
            EventKind::ToolRedefined { tool_name, fingerprint, .. } => {
                let what = if id.is_empty() { tool_name.to_string() } else { id };
                format!("redefined {what} {fingerprint}")
            }
            EventKind::ApprovalRequest { kind: QuestionKind::Elicitation, question, schema, url, .. } => {
                let wants = match (schema, url) {
                    (_, Some(url)) => url.clone(),
                    (Some(_), _) => "form".into(),
                    (None, None) => "nothing".into(),
                };
                format!("question {id} {question} ({wants})")
            }
            EventKind::ApprovalResolved { answer: Some(answer), by, stop, .. } => {
                format!("answered {id} {answer} by {by}{}", if *stop { " and stop" } else { "" })
            }
            EventKind::ApprovalRequest { rule, .. } => format!("ask {id} {rule}"),
            EventKind::ApprovalResolved { decision, by, stop, .. } => {
                format!("answer {id} {} by {by}{}", word(decision), if *stop { " and stop" } else { "" })
            }
            EventKind::ToolStart { early, attempt, .. } => {
                format!("start {id}{}{}", if *early { " early" } else { "" }, again(*attempt))
            }
            EventKind::ToolProgress(_) => format!("progress {id}"),
            EventKind::ToolResult(result) => {
                let what = match (&result.error, &result.output) {
                    (Some(error), _) if error.code != word(&result.status) => format!(" ({})", error.code),
                    (None, Some(output)) => format!(" {output}"),
                    _ => String::new(),
                };
                format!("result {id} {}{what}", word(&result.status))
            }
            EventKind::UserMessage { input, .. } => format!("user {}", text_of(input)),
            EventKind::Waiting { reason, until, .. } => {
                let until = until.map_or(0, |until| until - self.now);
                format!("waiting {} {until}", word(reason))
            }
            EventKind::Problem { code, .. } => format!("problem {code}"),
            EventKind::Error(fault) => format!("error {}", fault.code),
            EventKind::TurnResumed { epoch, .. } => format!("resumed {epoch}"),
            EventKind::StreamEnd { status, .. } => format!("end {}", word(status)),
            other => format!("{other:?}"),
        })
    }

    pub fn message(&self) -> fold::AssistantMessage {
        fold::AssistantMessage::from_events(&self.log)
    }
}

fn parts(text: &str) -> Vec<UserPart> {
    Some(text)
        .filter(|text| !text.is_empty())
        .map(|text| UserPart::Text { text: text.into() })
        .into_iter()
        .collect()
}

pub fn text_of(parts: &[UserPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        UserPart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn again(attempt: u32) -> String {
    if attempt > 1 { format!(" again {attempt}") } else { String::new() }
}

pub fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(ToOwned::to_owned))
        .unwrap_or_default()
}
