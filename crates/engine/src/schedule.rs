//! Conditions for the start of a call: seal, effect, commit, and what runs already. Pure, and tested as a table.

use crate::setup::{ExecutionMode, StartRule};
use crate::tool::{Effect, ToolConcurrency};
use throughline_wire::SealEvidence;

/// Commit of a call's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommitState {
    /// The model still talks.
    Open,
    /// A trustworthy finish has arrived and nothing contradicted the seal.
    Done,
}

/// True if a call with this seal and effect may start, as far as the stream is concerned.
pub(crate) fn may_start(effect: Effect, seal: SealEvidence, commit: CommitState, start: StartRule) -> bool {
    match (commit, start) {
        (CommitState::Done, _) => true,
        (CommitState::Open, StartRule::AfterStream) => false,
        // Successor and Terminal seals are followed by the commit soon enough.
        (CommitState::Open, StartRule::Eager) => {
            effect.may_start_early() && matches!(seal, SealEvidence::Explicit | SealEvidence::Balanced)
        }
    }
}

/// A call of the current step, as the order of starting sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScheduledCall<'a> {
    pub stage: ScheduleStage,
    pub effect: Effect,
    pub concurrency: &'a ToolConcurrency,
}

/// Stage of a call, as the order of starting sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScheduleStage {
    /// Not ready, and when it will be is unknown.
    NotReady,
    /// Waiting for a person; later calls may start before it.
    AwaitingApproval,
    /// The requester of the turn runs it, in parallel to everything else.
    Remote,
    /// May start as soon as the limits allow.
    Ready,
    Running,
    Closed,
}

/// Chooses the next call to start, of those given in recorded order: the first that is ready and has room.
pub(crate) fn next_start(calls: &[ScheduledCall<'_>], execution: ExecutionMode) -> Option<usize> {
    match execution {
        ExecutionMode::Serial => serial(calls),
        ExecutionMode::Parallel => parallel(calls),
    }
}

fn serial(calls: &[ScheduledCall<'_>]) -> Option<usize> {
    if calls.iter().any(|call| call.stage == ScheduleStage::Running) {
        return None;
    }
    let mut blocked = false;
    for (at, call) in calls.iter().enumerate() {
        match call.stage {
            ScheduleStage::Ready if !blocked || may_overtake(call.effect) => return Some(at),
            ScheduleStage::NotReady => blocked = true,
            ScheduleStage::Ready
            | ScheduleStage::AwaitingApproval
            | ScheduleStage::Remote
            | ScheduleStage::Running
            | ScheduleStage::Closed => {}
        }
    }
    None
}

/// True if a call with this effect may start before earlier ones that are not ready. A call that reads must
/// not: it would see the state before an earlier call has changed it, and the eager history would differ from
/// the one after the commit.
fn may_overtake(effect: Effect) -> bool {
    matches!(effect, Effect::Pure | Effect::Cosmetic)
}

fn parallel(calls: &[ScheduledCall<'_>]) -> Option<usize> {
    let running = || calls.iter().filter(|call| call.stage == ScheduleStage::Running);
    if running().any(|call| *call.concurrency == ToolConcurrency::Alone) {
        return None;
    }
    for (at, call) in calls.iter().enumerate() {
        if call.stage != ScheduleStage::Ready {
            continue;
        }
        match call.concurrency {
            ToolConcurrency::Shared => return Some(at),
            ToolConcurrency::Class(_) if !running().any(|other| other.concurrency == call.concurrency) => {
                return Some(at);
            }
            ToolConcurrency::Class(_) => {}
            // What comes later waits as well, or it would never get its turn.
            ToolConcurrency::Alone => return running().next().is_none().then_some(at),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_depends_on_seal_effect_and_commit() {
        use Effect as E;
        let effects = [E::Pure, E::Read, E::Cosmetic, E::Idempotent, E::Write, E::External];
        for effect in effects {
            for seal in [
                SealEvidence::Balanced,
                SealEvidence::Successor,
                SealEvidence::Terminal,
                SealEvidence::Explicit,
            ] {
                let early = matches!(effect, E::Pure | E::Read | E::Cosmetic)
                    && matches!(seal, SealEvidence::Balanced | SealEvidence::Explicit);
                let ask = |commit, start| may_start(effect, seal, commit, start);
                assert_eq!(ask(CommitState::Open, StartRule::Eager), early, "{effect:?} {seal:?}");
                assert!(!ask(CommitState::Open, StartRule::AfterStream), "{effect:?} {seal:?}");
                assert!(ask(CommitState::Done, StartRule::Eager), "{effect:?} {seal:?}");
                assert!(ask(CommitState::Done, StartRule::AfterStream), "{effect:?} {seal:?}");
            }
        }
    }

    /// One word a call: stage `-` not ready, `?` asked, `+` ready, `*` running, `.` closed; effect `p r c i w x`;
    /// then `!` for alone or a class letter.
    fn next(script: &str, execution: ExecutionMode) -> Option<usize> {
        let classes: Vec<ToolConcurrency> = script
            .split_whitespace()
            .map(|word| match word.chars().nth(2) {
                None => ToolConcurrency::Shared,
                Some('!') => ToolConcurrency::Alone,
                Some(class) => ToolConcurrency::Class(class.into()),
            })
            .collect();
        let calls: Vec<ScheduledCall<'_>> = script
            .split_whitespace()
            .zip(&classes)
            .map(|(word, concurrency)| {
                let mut chars = word.chars();
                let stage = match chars.next() {
                    Some('-') => ScheduleStage::NotReady,
                    Some('?') => ScheduleStage::AwaitingApproval,
                    Some('+') => ScheduleStage::Ready,
                    Some('*') => ScheduleStage::Running,
                    _ => ScheduleStage::Closed,
                };
                let effect = match chars.next() {
                    Some('p') => Effect::Pure,
                    Some('r') => Effect::Read,
                    Some('c') => Effect::Cosmetic,
                    Some('i') => Effect::Idempotent,
                    Some('w') => Effect::Write,
                    _ => Effect::External,
                };
                ScheduledCall { stage, effect, concurrency }
            })
            .collect();
        next_start(&calls, execution)
    }

    #[test]
    fn serial_mode_starts_calls_one_at_a_time_in_order() {
        let table = [
            ("", None),
            ("+r +r", Some(0)),
            ("*r +r", None),
            (".r +r", Some(1)),
            // one that waits for a person lets later ones start
            ("?w +r", Some(1)),
            ("?w +w", Some(1)),
            ("?w *r +r", None),
            // a read does not pass a write that is not ready, a gesture does
            ("-w +r", None),
            ("-w +c", Some(1)),
            ("-w +p", Some(1)),
            ("-w +r +c", Some(2)),
            ("-r +r", None),
        ];
        for (calls, expected) in table {
            assert_eq!(next(calls, ExecutionMode::Serial), expected, "{calls}");
        }
    }

    #[test]
    fn parallel_mode_respects_classes_and_exclusive_calls() {
        let table = [
            ("*r +r", Some(1)),
            ("*r *r +w", Some(2)),
            ("-w +r", Some(1)),
            ("?w +r", Some(1)),
            // one at a time within a class, other classes in parallel
            ("*ra +ra +rb", Some(2)),
            ("*ra +ra", None),
            (".ra +ra", Some(1)),
            // alone: waits for all, and all wait for it
            ("*r +w! +r", None),
            ("*w! +r", None),
            (".r +w! +r", Some(1)),
        ];
        for (calls, expected) in table {
            assert_eq!(next(calls, ExecutionMode::Parallel), expected, "{calls}");
        }
    }
}
