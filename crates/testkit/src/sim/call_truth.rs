//! The truth about the calls of a run, which the machine never sees: replies that were written as bytes, the
//! effects of tools, and starts whose connection broke after they were sent.

use super::check::{BrokenInvariant, ensure};
use super::wire_reply::ReplyTruth;
use super::{SimMutant, SimSummary};
use std::collections::{BTreeMap, BTreeSet};
use throughline_engine::{CallStatus, Effect, Event, EventKind};
use throughline_wire::{CallId, CallOutcome, WireName};

/// The truth about calls, and the checks that need it.
pub(super) struct CallTruth {
    /// Real effects of tools, by name on the wire.
    effects: Vec<(WireName, Effect)>,
    /// Truth about the replies that the decoder read from bytes, by step.
    replies: BTreeMap<u32, ReplyTruth>,
    /// Starts of tools with effects that were sent, and whose line broke.
    lost: BTreeSet<(CallId, u32)>,
    last_starts: BTreeMap<CallId, u32>,
}

impl CallTruth {
    pub(super) fn new(effects: Vec<(WireName, Effect)>) -> Self {
        Self { effects, replies: BTreeMap::new(), lost: BTreeSet::new(), last_starts: BTreeMap::new() }
    }

    /// Sets the truth about the reply to a step; `None`: it does not come as bytes.
    pub(super) fn set_reply(&mut self, step: u32, truth: Option<ReplyTruth>) {
        self.replies.remove(&step);
        self.replies.extend(truth.map(|truth| (step, truth)));
    }

    /// True if the line to this start broke after it was sent.
    pub(super) fn is_lost(&self, start: &(CallId, u32)) -> bool {
        self.lost.contains(start)
    }

    /// Checks that a tool with effects runs only for a complete call that was really made.
    pub(super) fn check_made(
        &self,
        log: &[Event],
        call: &CallId,
        summary: &mut SimSummary,
    ) -> Result<(), BrokenInvariant> {
        let its: Vec<&Event> = log.iter().filter(|event| event.tool_id.as_ref() == Some(call)).collect();
        let wire_name = its.iter().find_map(|event| match &event.kind {
            EventKind::ToolUse { wire_name, .. } => Some(wire_name),
            _ => None,
        });
        // As the model wrote them: a person's have no seal.
        let arguments = its.iter().rev().find_map(|event| match &event.kind {
            EventKind::ToolInput(input) if input.seal.is_some() => input.arguments.as_ref(),
            _ => None,
        });
        let step = its.first().and_then(|event| event.step);
        let (Some(name), Some(arguments), Some(truth)) =
            (wire_name, arguments, step.and_then(|step| self.replies.get(&step)))
        else {
            return Ok(());
        };
        if self.effects.iter().any(|(known, effect)| known == name && effect.may_start_early()) {
            return Ok(());
        }
        summary.byte_starts += 1;
        truth.check_start(name.as_str(), arguments)
    }

    /// Outcome of a call whose connection breaks after it was sent: the source reports what it knows, and the
    /// executor derives the outcome.
    pub(super) fn lost_outcome(
        &mut self,
        call: &CallId,
        attempt: u32,
        effect: Effect,
        mutant: Option<SimMutant>,
        summary: &mut SimSummary,
    ) -> CallOutcome {
        let message = "the connection broke before it had answered".to_owned();
        if !effect.has_effects() || mutant == Some(SimMutant::NoCommitRule) {
            return CallOutcome::Failed { message, partial: None };
        }
        summary.lost += 1;
        self.lost.insert((call.clone(), attempt));
        match mutant {
            Some(SimMutant::LossIsFailure) => CallOutcome::Failed { message, partial: None },
            _ => CallOutcome::Unknown { message: Some(message), partial: None },
        }
    }

    /// Checks a lost call: it may have been executed, so it is never reported as failed, and never repeated.
    pub(super) fn check_loss(&mut self, log: &[Event], event: &Event) -> Result<(), BrokenInvariant> {
        let Some(call) = &event.tool_id else { return Ok(()) };
        let last_start = self.last_starts.get(call).copied().unwrap_or_default();
        let is_lost = self.lost.contains(&(call.clone(), last_start));
        match &event.kind {
            EventKind::ToolStart { attempt, .. } => {
                self.last_starts.insert(call.clone(), *attempt);
                let may_repeat = || self.effect_of(log, call).is_some_and(Effect::may_repeat);
                ensure(!is_lost || may_repeat(), || {
                    format!("{call} is made again, and nobody knows whether it was done")
                })
            }
            EventKind::ToolResult(result) => {
                let is_sure = matches!(result.status, CallStatus::Success | CallStatus::Error);
                ensure(!(is_lost && is_sure), || {
                    format!("{call} was sent and never answered, and ends as {:?}", result.status)
                })
            }
            _ => Ok(()),
        }
    }

    /// The real effect of a call's tool.
    fn effect_of(&self, log: &[Event], call: &CallId) -> Option<Effect> {
        let wire_name = log.iter().find_map(|event| match &event.kind {
            EventKind::ToolUse { wire_name, .. } if event.tool_id.as_ref() == Some(call) => Some(wire_name),
            _ => None,
        })?;
        self.effects.iter().find(|(name, _)| name == wire_name).map(|(_, effect)| *effect)
    }
}
