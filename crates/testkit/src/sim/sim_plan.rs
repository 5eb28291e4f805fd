//! Decisions of a seed before the turn begins: tools, rules, limits.

use super::consent::{SimConstraint, SimRemembered, SimRule};
use super::rng::SimRng;
use super::{SimMutant, SimOptions, people};
use throughline_engine::{
    ApprovalDecision, ApprovalRule, CallRunner, ConfirmMode, Effect, ExecutionMode, LoopGuard, OfferedTool,
    OnInterrupted, PermissionRule, Policy, PollingMode, RetryPolicy, RuleAction, SetupRemark, StartRule,
    ToolConcurrency, TurnInput, TurnLimits, TurnSetup, TurnStart, UpstreamChoice,
};
use throughline_wire::{ToolName, UserPart, WireName};

/// The drawn setup, without the events in it.
pub(super) struct SimPlan {
    /// Setup of the machine.
    pub setup: TurnSetup,
    pub start: TurnStart,
    /// The real rules, and the earlier decisions of people.
    pub rules: Vec<SimRule>,
    pub past_decisions: Vec<SimRemembered>,
    /// When which tool gets another definition, in milliseconds from the start.
    pub redefinitions: Vec<(i64, ToolName)>,
    /// Real effects of tools, by name on the wire: a mutant may lie to the machine, never to the checks.
    pub truth: Vec<(WireName, Effect)>,
    /// Appends take up to this long, in milliseconds.
    pub append_ms: u64,
    /// Percent of appends that kill the process, before or after they are durable.
    pub crash_percent: u64,
    /// Percent of appends that the log refuses.
    pub refuse_percent: u64,
    /// When the user presses stop, in milliseconds from the start.
    pub cancels: Vec<i64>,
    /// Messages of the user in mid-turn, sent or retracted, in milliseconds from the start.
    pub user_messages: Vec<(i64, TurnInput)>,
    /// Limit of the pauses of a call's time limit, in milliseconds: the truth, for the checks.
    pub asked_ms_max: i64,
    /// Events go through JSON on their way to the shadow.
    pub through_json: bool,
}

pub(super) fn draw(rng: &mut SimRng, options: &SimOptions) -> SimPlan {
    let mut extra_rng = rng.fork(1);
    let mut rule_rng = rng.fork(2);
    let execution = options.execution.unwrap_or(if rng.chance(50) {
        ExecutionMode::Serial
    } else {
        ExecutionMode::Parallel
    });
    let start =
        options.start.unwrap_or(if rng.chance(70) { StartRule::Eager } else { StartRule::AfterStream });
    let tools: Vec<OfferedTool> = TOOLS.iter().map(|(name, effect)| draw_tool(rng, name, *effect)).collect();
    let truth = tools.iter().map(|tool| (tool.wire_name.clone(), tool.effect)).collect();
    let mut setup = TurnSetup {
        agent: "sim".into(),
        instructions: None,
        history: Vec::new(),
        history_too_long: false,
        upstreams: (0..1 + rng.below(3))
            .map(|n| UpstreamChoice { name: format!("up{n}"), model: format!("m{n}") })
            .collect(),
        mode: "auto".into(),
        tools,
        tool_choice: Default::default(),
        settings: Default::default(),
        limits: TurnLimits {
            iterations_max: 1 + rng.below(5) as u32,
            pauses_max: rng.below(3) as u32,
            calls_per_turn_max: if rng.chance(5) { 3 } else { 256 },
            approval_ms_max: Some(1_000 + rng.below(20_000)),
            cancel_grace_ms: 2_000,
            tool_overrun_ms: 5_000,
            output_bytes_max: if rng.chance(10) { 64 } else { 64 << 10 },
            progress_events_max: if rng.chance(20) { 5 } else { 1_000 },
            problems_per_step_max: if rng.chance(10) { 2 } else { 100 },
            questions_per_call_max: 1 + extra_rng.below(3) as u32,
            asked_ms_max: if extra_rng.chance(20) { 2_000 } else { 1_800_000 },
            messages_queued_max: if extra_rng.chance(10) { 1 } else { 32 },
            // Results of simulated tools are short.
            shortened_output_bytes_max: 16,
            ..TurnLimits::default()
        },
        start,
        execution,
        policy: Policy::default(),
        remembered: Vec::new(),
        approval: match rng.below(10) {
            0..6 => ApprovalRule::Ask,
            6..9 => ApprovalRule::ApproveAll,
            _ => ApprovalRule::DenyAll { reason: "nobody is there".into() },
        },
        text_rules: Vec::new(),
        guard: match extra_rng.below(10) {
            0 => LoopGuard::off(),
            1 => LoopGuard { note_after: 2, ask_after: 0, stop_after: 3, period_max: 2 },
            _ => LoopGuard::default(),
        },
        first_step_attempts_max: None,
        retry: RetryPolicy { attempts_max: 1 + rng.below(3) as u32, ..RetryPolicy::default() },
        on_interrupted: if rng.chance(60) { OnInterrupted::Continue } else { OnInterrupted::End },
        remarks: if extra_rng.chance(10) {
            vec![SetupRemark { code: "tool_not_offered".into(), what: "a tool".into(), remedy: None }]
        } else {
            Vec::new()
        },
    };
    let asked_ms_max = i64::try_from(setup.limits.asked_ms_max).unwrap_or(i64::MAX);
    if options.mutant == Some(SimMutant::TimeRunsOn) {
        setup.limits.asked_ms_max = 0;
        setup.limits.tool_overrun_ms = 0;
    }
    if options.mutant == Some(SimMutant::NoCommitRule) {
        for tool in &mut setup.tools {
            tool.effect = Effect::Read;
        }
    }
    let start = TurnStart {
        turn_id: "sim".into(),
        conversation_id: None,
        message_id: "msg".into(),
        nonce: rng.next(),
        input: vec![UserPart::Text { text: "go".into() }],
    };
    let mut cancels = Vec::new();
    if rng.chance(20) {
        let first = rng.wait(1_500);
        cancels.push(first);
        while rng.chance(40) && cancels.len() < 3 {
            cancels.push(first + rng.wait(400));
        }
    }
    let unsteady = rng.chance(30);
    for tool in &mut setup.tools {
        if rule_rng.chance(5) {
            tool.permission = PermissionRule::Ask;
        }
    }
    let (rules, past_decisions) = (draw_rules(&mut rule_rng), draw_past_decisions(&mut rule_rng));
    setup.policy = Policy {
        permissions: None,
        rules: rules.iter().map(SimRule::to_rule).collect(),
        confirm: match rule_rng.below(20) {
            0 => ConfirmMode::Everything,
            1 => ConfirmMode::Manual,
            _ => ConfirmMode::ByRule,
        },
    };
    setup.remembered = past_decisions.iter().map(SimRemembered::to_remembered).collect();
    if options.mutant == Some(SimMutant::MemoryIgnoresFingerprint) {
        setup.remembered.iter_mut().for_each(|remembered| remembered.fingerprint = FINGERPRINT.into());
    }
    let redefinitions = if rule_rng.chance(25) {
        (0..1 + rule_rng.below(8))
            .map(|_| (rule_rng.wait(2_000), ToolName::new(tool_name(&mut rule_rng))))
            .collect()
    } else {
        Vec::new()
    };
    SimPlan {
        setup,
        rules,
        past_decisions,
        redefinitions,
        start,
        truth,
        append_ms: if rng.chance(20) { 300 } else { rng.below(6) },
        crash_percent: if unsteady { 1 + rng.below(40) } else { 0 },
        refuse_percent: if unsteady && rng.chance(50) { 1 + rng.below(5) } else { 0 },
        cancels,
        user_messages: people::mid_turn_messages(&mut extra_rng),
        asked_ms_max,
        through_json: rng.chance(25),
    }
}

/// Fingerprint of every tool as it is offered.
const FINGERPRINT: &str = "f1";

fn tool_name(rng: &mut SimRng) -> &'static str {
    rng.pick(&TOOLS).map_or("web.read", |(name, _)| name)
}

fn draw_rules(rng: &mut SimRng) -> Vec<SimRule> {
    if rng.chance(70) {
        return Vec::new();
    }
    (0..1 + rng.below(3))
        .map(|_| SimRule {
            decide: *rng
                .pick(&[RuleAction::Allow, RuleAction::Ask, RuleAction::Deny])
                .unwrap_or(&RuleAction::Ask),
            tool: rng.chance(80).then(|| tool_name(rng)),
            q: rng.chance(50).then(|| *rng.pick(&["0", "1", "changed"]).unwrap_or(&"0")),
        })
        .collect()
}

/// Decisions of people before this turn; some are about older definitions.
fn draw_past_decisions(rng: &mut SimRng) -> Vec<SimRemembered> {
    if rng.chance(60) {
        return Vec::new();
    }
    (0..1 + rng.below(3))
        .map(|_| SimRemembered {
            decision: if rng.chance(75) { ApprovalDecision::Approve } else { ApprovalDecision::Deny },
            tool: ToolName::new(tool_name(rng)),
            fingerprint: if rng.chance(60) { FINGERPRINT } else { "f0" }.into(),
            arguments: if rng.chance(50) { SimConstraint::Any } else { SimConstraint::Q("1".into()) },
        })
        .collect()
}

const TOOLS: [(&str, Effect); 8] = [
    ("calc.add", Effect::Pure),
    ("web.read", Effect::Read),
    ("db.look", Effect::Read),
    ("face.smile", Effect::Cosmetic),
    ("cache.put", Effect::Idempotent),
    ("note.write", Effect::Write),
    ("mail.send", Effect::External),
    ("page.click", Effect::Write),
];

fn draw_tool(rng: &mut SimRng, name: &str, effect: Effect) -> OfferedTool {
    let runs = match name {
        "face.smile" | "page.click" if rng.chance(60) => {
            CallRunner::Client { client_id: rng.chance(80).then(|| "page".to_owned()) }
        }
        _ => CallRunner::Here,
    };
    OfferedTool {
        source: "sim".into(),
        concurrency: match rng.below(6) {
            0 => ToolConcurrency::Alone,
            1 => ToolConcurrency::Class("db".into()),
            _ => ToolConcurrency::Shared,
        },
        timeout_ms: 200 + rng.below(5_000),
        polling: if rng.chance(10) { PollingMode::Poller } else { PollingMode::No },
        runs,
        fingerprint: FINGERPRINT.into(),
        ..OfferedTool::new(name, effect)
    }
}
