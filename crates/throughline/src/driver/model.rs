//! The model call of a turn: one at a time, part of the turn's own task, read only when the outbox has
//! capacity.

use super::request_hooks::RequestHooks;
use crate::clock::TurnClock;
use crate::media::{HydratedForm, MediaOffloader};
use crate::observe::ObservedCall;
use crate::request_files::HydratedRequest;
use crate::upstream::{CallTime, EventBatch, ModelHandoff, ModelItem, UpstreamClient};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use throughline_engine::{FailureKind, TurnInput, UpstreamFailure};
use throughline_wire::text_calls::CallFormat;
use throughline_wire::{
    CallArguments, CallKind, CallSlot, FinishReason, ModelRequest, SealEvidence, StepEvent, StreamEnd,
    WireName,
};
use tokio::time::Instant;

/// Most bytes of deltas that are held together while the log is busy.
const HELD_BYTES_MAX: usize = 64 << 10;

/// The running call, if any.
#[derive(Default)]
pub(super) struct ModelCall {
    /// Transport of tool calls.
    call_format: CallFormat,
    offloader: MediaOffloader,
    hooks: RequestHooks,
    current: Option<CurrentCall>,
    /// The current call and its deadline: attempts of one call share their time.
    deadline: Option<CallDeadline>,
    /// Deltas received while an append was pending: neighbors are joined, so that a slow log gets fewer and larger
    /// events.
    held_events: EventBatch,
}

struct CallDeadline {
    step: u32,
    upstream: String,
    model: String,
    at: Instant,
}

struct CurrentCall {
    step: u32,
    attempt: u32,
    handoff: ModelHandoff,
    /// `None` = it has ended. Dropping it closes the connection.
    call: Option<BoxFuture<'static, ()>>,
}

impl ModelCall {
    pub(super) fn new(call_format: CallFormat, offloader: MediaOffloader, hooks: RequestHooks) -> Self {
        Self { call_format, offloader, hooks, ..Self::default() }
    }

    /// Begins a call. A call that is still running is dropped: the machine has requested another.
    pub(super) fn start(
        &mut self,
        step: u32,
        attempt: u32,
        client: Arc<UpstreamClient>,
        mut request: Box<ModelRequest>,
        clock: TurnClock,
        watch: ObservedCall,
    ) {
        let deadline = self.deadline_for(step, &client, &request.model);
        let (handoff, calls, offloader) =
            (ModelHandoff::default(), self.call_format.clone(), self.offloader.clone());
        let (out, hooks) = (handoff.clone(), self.hooks.clone());
        let call = async move {
            let call = AssertUnwindSafe(async {
                let form = if client.streams_files() && !hooks.has_preprocessors() {
                    HydratedForm::Streamed
                } else {
                    HydratedForm::Inline
                };
                let files = offloader.hydrate(&mut request, form).await;
                hooks.apply(&mut request).await;
                let request = HydratedRequest { request, files };
                let time = CallTime { clock: &clock, deadline };
                client.call(request, &calls, time, watch, &offloader, &out).await;
            });
            if call.catch_unwind().await.is_err() {
                out.put(ModelItem::Failed(broken_failure("reading the reply panicked; please report this")))
                    .await;
            }
        };
        self.held_events = EventBatch::default();
        self.current = Some(CurrentCall { step, attempt, handoff, call: Some(Box::pin(call)) });
    }

    /// Uses a given call as the whole reply: no model is called.
    pub(super) fn start_with_call(
        &mut self,
        step: u32,
        attempt: u32,
        name: WireName,
        arguments: CallArguments,
    ) {
        let (handoff, slot) = (ModelHandoff::default(), CallSlot(0));
        let reply = vec![
            StepEvent::CallOpened {
                slot,
                position: 0,
                upstream_id: None,
                name,
                kind: CallKind::Function,
                arguments: Some(arguments.text.clone().into()),
            },
            StepEvent::CallArguments { slot, delta: arguments.text.clone().into() },
            StepEvent::CallSealed { slot, seal: SealEvidence::Explicit, arguments },
            StepEvent::Finish { reason: FinishReason::ToolCalls, raw: None },
            StepEvent::End(StreamEnd::Complete),
        ];
        let out = handoff.clone();
        let call = async move { out.put(ModelItem::Events(reply)).await };
        self.held_events = EventBatch::default();
        self.current = Some(CurrentCall { step, attempt, handoff, call: Some(call.boxed()) });
    }

    /// Deadline of this attempt. A different upstream or model, and every step, has a new one.
    fn deadline_for(&mut self, step: u32, client: &UpstreamClient, model: &str) -> Instant {
        let upstream = client.upstream().name.as_str();
        match &self.deadline {
            Some(asked) if asked.step == step && asked.upstream == upstream && asked.model == model => {
                asked.at
            }
            _ => {
                let (upstream, model, at) = (upstream.to_owned(), model.to_owned(), client.deadline());
                self.deadline = Some(CallDeadline { step, upstream, model, at });
                at
            }
        }
    }

    /// Gives a call up, if it is still the current one.
    pub(super) fn abort(&mut self, step: u32, attempt: u32) {
        if self.current.as_ref().is_some_and(|current| (current.step, current.attempt) == (step, attempt)) {
            self.current = None;
            self.held_events = EventBatch::default();
        }
    }

    /// The next piece; pending while no call is running. `None` = the call has ended without a result.
    /// Dropping the future loses nothing. The socket is read only while this is polled.
    pub(super) async fn next(&mut self) -> Option<ModelItem> {
        match &mut self.current {
            Some(CurrentCall { handoff, call, .. }) => handoff.next_from(call).await,
            None => std::future::pending().await,
        }
    }

    /// Inputs for the machine from a piece of the reply. Deltas alone can wait for a busy log.
    pub(super) fn next_inputs(&mut self, item: Option<ModelItem>, log: LogState) -> Vec<TurnInput> {
        match item {
            Some(ModelItem::Events(events)) => {
                for event in events {
                    self.held_events.push(event);
                }
                if log == LogState::Busy
                    && self.held_events.is_only_deltas()
                    && self.held_events.bytes() < HELD_BYTES_MAX
                {
                    return Vec::new();
                }
                self.take_held()
            }
            Some(ModelItem::Failed(failure)) => self.fail(failure),
            None => self.fail(broken_failure("the model call ended without a result")),
        }
    }

    /// True if deltas are held back for a busy log.
    pub(super) fn is_holding(&self) -> bool {
        !self.held_events.is_empty()
    }

    /// The held deltas.
    pub(super) fn take_held(&mut self) -> Vec<TurnInput> {
        let Some(CurrentCall { step, attempt, .. }) = self.current else { return Vec::new() };
        let events = std::mem::take(&mut self.held_events).into_events();
        if events.iter().any(|event| matches!(event, StepEvent::End(_))) {
            self.current = None;
        }
        events.into_iter().map(|event| TurnInput::Model { step, attempt, event }).collect()
    }

    fn fail(&mut self, failure: UpstreamFailure) -> Vec<TurnInput> {
        let mut inputs = self.take_held();
        if let Some(CurrentCall { step, attempt, .. }) = self.current.take() {
            let time_left_ms = self.deadline.as_ref().filter(|of| of.step == step).map(|of| {
                u64::try_from(of.at.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(u64::MAX)
            });
            inputs.push(TurnInput::ModelFailed { step, attempt, failure, time_left_ms });
        }
        inputs
    }
}

/// State of the log: an append is pending, or none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogState {
    Idle,
    Busy,
}

fn broken_failure(message: &str) -> UpstreamFailure {
    UpstreamFailure {
        kind: FailureKind::Broken,
        status: None,
        message: message.to_owned(),
        retry_after_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call in progress without a task.
    fn going_on() -> ModelCall {
        let call = Some(std::future::pending().boxed());
        let current = Some(CurrentCall { step: 1, attempt: 2, handoff: ModelHandoff::default(), call });
        ModelCall { current, ..ModelCall::default() }
    }

    fn text(text: &'static str) -> Option<ModelItem> {
        Some(ModelItem::Events(vec![StepEvent::Text(text.into())]))
    }

    fn input(event: StepEvent<'static>) -> TurnInput {
        TurnInput::Model { step: 1, attempt: 2, event }
    }

    #[test]
    fn deltas_are_joined_only_while_the_log_is_busy() {
        let mut call = going_on();
        assert_eq!(
            call.next_inputs(text("at once"), LogState::Idle),
            [input(StepEvent::Text("at once".into()))]
        );
        for word in ["and ", "then ", "more"] {
            assert_eq!(call.next_inputs(text(word), LogState::Busy), []);
        }
        assert_eq!(call.take_held(), [input(StepEvent::Text("and then more".into()))]);
        assert_eq!(call.take_held(), []);
    }

    #[test]
    fn event_other_than_a_delta_releases_held_deltas() {
        let mut call = going_on();
        assert_eq!(call.next_inputs(text("So"), LogState::Busy), []);
        let reopened = StepEvent::CallReopened { slot: CallSlot(0) };
        let inputs = call.next_inputs(Some(ModelItem::Events(vec![reopened.clone()])), LogState::Busy);
        assert_eq!(inputs, [input(StepEvent::Text("So".into())), input(reopened)]);
    }

    #[test]
    fn held_deltas_are_bounded() {
        let mut call = going_on();
        let long: &'static str = Box::leak("x".repeat(HELD_BYTES_MAX - 1).into_boxed_str());
        assert_eq!(call.next_inputs(text(long), LogState::Busy), []);
        assert_eq!(call.next_inputs(text("y"), LogState::Busy).len(), 1);
    }

    #[test]
    fn model_call_ends_once() {
        let mut broken_off = going_on();
        broken_off.next_inputs(text("So"), LogState::Busy);
        let inputs = broken_off.next_inputs(None, LogState::Busy);
        assert!(
            matches!(
                inputs[..],
                [TurnInput::Model { .. }, TurnInput::ModelFailed { step: 1, attempt: 2, .. }]
            ),
            "{inputs:?}"
        );
        assert_eq!(broken_off.next_inputs(None, LogState::Idle), []);

        let mut complete = going_on();
        let end = StepEvent::End(StreamEnd::Complete);
        let inputs = complete.next_inputs(Some(ModelItem::Events(vec![end.clone()])), LogState::Idle);
        assert_eq!(inputs, [input(end)]);
        assert_eq!(complete.next_inputs(None, LogState::Idle), [], "what ended has no second end");

        let mut given_up = going_on();
        given_up.next_inputs(text("So"), LogState::Busy);
        given_up.abort(1, 1);
        assert!(given_up.current.is_some(), "another attempt was meant");
        given_up.abort(1, 2);
        assert_eq!(given_up.take_held(), [], "nothing of it is wanted");
    }
}
