//! What a seed decides before the turn begins: tools, rules, limits.

use super::rng::Rng;
use super::{Mutant, Options, people};
use throughline_engine::{
    ApprovalRule, Concurrency, Effect, Execution, Input, LoopGuard, OfferedTool, OnInterrupted, Policy,
    Polling, Remark, RetryPolicy, Runs, StartRule, TurnLimits, TurnSetup, TurnStart, UpstreamChoice,
};
use throughline_wire::{UserPart, WireName};

/// The drawn world, apart from what happens in it.
pub(super) struct Plan {
    /// What the machine is told.
    pub setup: TurnSetup,
    pub start: TurnStart,
    /// What tools really do, by name on the wire: a mutant may lie to the machine, never to the checks.
    pub truth: Vec<(WireName, Effect)>,
    /// Appends take up to this long, in milliseconds.
    pub append_ms: u64,
    /// Percent of appends that kill the process, before or after they are durable.
    pub crash_percent: u64,
    /// Percent of appends that the log refuses.
    pub refuse_percent: u64,
    /// When the user presses stop, in milliseconds from the start.
    pub cancels: Vec<i64>,
    /// What the user says in mid-turn or takes back, in milliseconds from the start.
    pub says: Vec<(i64, Input)>,
    /// Events go through JSON on their way to the shadow.
    pub through_json: bool,
}

pub(super) fn draw(rng: &mut Rng, options: &Options) -> Plan {
    let mut more = rng.fork(1);
    let execution =
        options.execution.unwrap_or(if rng.chance(50) { Execution::Serial } else { Execution::Parallel });
    let start =
        options.start.unwrap_or(if rng.chance(70) { StartRule::Eager } else { StartRule::AfterStream });
    let tools: Vec<OfferedTool> = TOOLS.iter().map(|(name, effect)| tool(rng, name, *effect)).collect();
    let truth = tools.iter().map(|tool| (tool.wire_name.clone(), tool.effect)).collect();
    let mut setup = TurnSetup {
        agent: "sim".into(),
        instructions: None,
        history: Vec::new(),
        upstreams: (0..1 + rng.below(3))
            .map(|n| UpstreamChoice { name: format!("up{n}"), model: format!("m{n}") })
            .collect(),
        mode: "auto".into(),
        tools,
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
            messages_queued_max: if more.chance(10) { 1 } else { 32 },
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
        guard: match more.below(10) {
            0 => LoopGuard::off(),
            1 => LoopGuard { note_after: 2, ask_after: 0, stop_after: 3, period_max: 2 },
            _ => LoopGuard::default(),
        },
        retry: RetryPolicy { attempts_max: 1 + rng.below(3) as u32, ..RetryPolicy::default() },
        on_interrupted: if rng.chance(60) { OnInterrupted::Continue } else { OnInterrupted::End },
        remarks: match more.chance(10) {
            true => vec![Remark { code: "tool_not_offered".into(), what: "a tool".into(), remedy: None }],
            false => Vec::new(),
        },
    };
    if options.mutant == Some(Mutant::NoCommitRule) {
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
    Plan {
        setup,
        start,
        truth,
        append_ms: if rng.chance(20) { 300 } else { rng.below(6) },
        crash_percent: if unsteady { 1 + rng.below(40) } else { 0 },
        refuse_percent: if unsteady && rng.chance(50) { 1 + rng.below(5) } else { 0 },
        cancels,
        says: people::says(&mut more),
        through_json: rng.chance(25),
    }
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

fn tool(rng: &mut Rng, name: &str, effect: Effect) -> OfferedTool {
    let runs = match name {
        "face.smile" | "page.click" if rng.chance(60) => {
            Runs::Client { client_id: rng.chance(80).then(|| "page".to_owned()) }
        }
        _ => Runs::Here,
    };
    OfferedTool {
        source: "sim".into(),
        concurrency: match rng.below(6) {
            0 => Concurrency::Alone,
            1 => Concurrency::Class("db".into()),
            _ => Concurrency::Shared,
        },
        timeout_ms: 200 + rng.below(5_000),
        polling: if rng.chance(10) { Polling::Poller } else { Polling::No },
        runs,
        fingerprint: "f1".into(),
        ..OfferedTool::new(name, effect)
    }
}
