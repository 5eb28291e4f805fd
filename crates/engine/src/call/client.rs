//! Calls that a connected page or app runs: offered, waited for, answered by their id.
//!
//! A call is offered by its `tool_start`, which names the client. The first answer that comes in time closes it; every
//! later one changes nothing. A client that does not answer by the tool's time limit leaves a call with the code
//! `client_gone`: `unknown` if the tool can have effects, since the client may have run it, else `timed_out`. The wait survives a restart: the client is still
//! there, and the call is offered to it once more under the same id and attempt.

use crate::action::{CallOfferKind, TurnAction};
use crate::event::CallError;
use crate::input::{ClientAnswer, ClientStatus, TimerId};
use crate::machine::{NOTIFY_AFTER_MS, TurnMachine};
use crate::record::CallHandle;
use crate::wording;
use serde_json::Value;
use throughline_wire::{CallId, CallOutcome, ToolOutput};

impl TurnMachine<'_> {
    /// Asks the client to run a call that has been started.
    pub(crate) fn offer_call(&mut self, handle: CallHandle, client_id: String, kind: CallOfferKind) {
        let call = self.record.call(handle);
        let (Some(case), Some(until)) = (self.case(handle), self.tool_deadline(handle)) else { return };
        let (call, attempt) = (call.id.clone(), call.attempts);
        let (tool, arguments) = (case.tool.name.clone(), case.arguments.clone());
        let fingerprint = case.fingerprint.to_owned();
        let timer = TimerId::RemoteCall { call: call.clone(), attempt };
        self.push_action(TurnAction::OfferCall {
            call,
            attempt,
            client_id,
            tool,
            arguments,
            until,
            fingerprint,
            kind,
        });
        self.set_timer(timer, self.now + NOTIFY_AFTER_MS);
    }

    /// Continues the wait of a client-side call after a restart. False if the call is not client-side.
    pub(crate) fn resume_client_wait(&mut self, handle: CallHandle) -> bool {
        let Some(tool) = self.tool_of(handle).filter(|tool| tool.runs.is_remote()) else { return false };
        let client_id = tool.runs.client_id().map(str::to_owned);
        let Some(deadline) = self.tool_deadline(handle) else { return false };
        if let Some(client_id) = client_id {
            self.offer_call(handle, client_id, CallOfferKind::Repeated);
        }
        let call = self.record.call(handle);
        self.set_timer(TimerId::Tool { call: call.id.clone(), attempt: call.attempts }, deadline);
        true
    }

    /// Handles a client's answer: the first one in time wins. `attempt` = the start that it answers, if the
    /// client names it.
    pub(crate) fn client_answered(&mut self, call: &CallId, attempt: Option<u32>, answer: ClientAnswer) {
        let Some(handle) = self.record.find_call(call) else { return };
        let call = self.record.call(handle);
        let is_running = call.run().is_some();
        let by_client = self.tool_of(handle).is_some_and(|tool| tool.runs.is_remote());
        if !is_running || !by_client || attempt.is_some_and(|attempt| attempt != call.attempts) {
            return;
        }
        let ClientAnswer { status, output, applied } = answer;
        let output = client_output(output, applied, self.setup.limits.output_bytes_max);
        let outcome = match status {
            ClientStatus::Success => CallOutcome::Done(output),
            ClientStatus::Error => CallOutcome::Failed {
                message: if output.text.is_empty() { wording::client_failed() } else { output.text },
                partial: None,
            },
        };
        self.close_with(handle, outcome, |result| result.applied = applied);
    }

    /// The client did not answer in time.
    pub(crate) fn client_timed_out(&mut self, handle: CallHandle, limit_ms: u64) {
        let partial = None;
        let message = wording::client_timed_out();
        let has_effects = self.tool_of(handle).is_none_or(|tool| tool.effect.has_effects());
        let outcome = if has_effects {
            CallOutcome::Unknown { message: Some(message.clone()), partial }
        } else {
            CallOutcome::TimedOut { limit_ms, partial }
        };
        self.close_with(handle, outcome, |result| {
            result.error = Some(CallError {
                code: "client_gone".into(),
                message: Some(message),
                limit_ms: Some(limit_ms),
                ..result.error.take().unwrap_or_default()
            });
        });
    }
}

/// A client's output as the model reads it, with the client's report about its effect.
fn client_output(output: Value, applied: Option<bool>, bytes_max: usize) -> ToolOutput {
    let (mut text, value) = match output {
        Value::Null => (String::new(), None),
        Value::String(text) => (text, None),
        value => (value.to_string(), Some(value)),
    };
    let size = text.len() as u64;
    // A value that is too large is sent as its text alone, as for every tool.
    let value = value.filter(|_| text.len() <= bytes_max);
    if let Some(applied) = applied {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(wording::applied(applied));
    }
    ToolOutput { text, value, size, ..ToolOutput::default() }
}
