//! Notifications of one turn to the observer. Without an observer nothing is created, copied or counted.

use super::{ModelCallEvent, ModelCallFacts, TurnFacts, TurnObserver};
use std::sync::Arc;
use std::time::Instant;
use throughline_engine::Event;
use throughline_tools::{SecretSet, StreamRedactor};

/// One turn as the observer sees it. Dropping it, on every path, notifies the observer of the end.
pub(crate) struct ObservedTurn(Option<(Arc<dyn TurnObserver>, Arc<TurnFacts>)>);

/// One model call as the observer sees it.
#[derive(Clone)]
pub(crate) struct ObservedCall(Option<CallObserver>);

type CallObserver = (Arc<dyn TurnObserver>, Arc<TurnFacts>, Arc<ModelCallFacts>);

impl ObservedTurn {
    pub(crate) fn new(observer: Option<Arc<dyn TurnObserver>>, facts: TurnFacts) -> Self {
        Self(observer.map(|observer| (observer, Arc::new(facts))))
    }

    pub(crate) fn resumed(&self, events: &[Event]) {
        if let Some((observer, facts)) = self.0.as_ref().filter(|_| !events.is_empty()) {
            observer.resumed(facts, events);
        }
    }

    pub(crate) fn logged(&self, events: &[Event]) {
        if let Some((observer, facts)) = &self.0 {
            observer.logged(facts, events);
        }
    }

    pub(crate) fn call(&self, call: impl FnOnce() -> ModelCallFacts) -> ObservedCall {
        ObservedCall(
            self.0.as_ref().map(|(observer, facts)| (observer.clone(), facts.clone(), Arc::new(call()))),
        )
    }
}

impl Drop for ObservedTurn {
    fn drop(&mut self) {
        if let Some((observer, facts)) = &self.0 {
            observer.turn_ended(facts);
        }
    }
}

impl ObservedCall {
    /// A call without an observer.
    pub(crate) fn unobserved() -> Self {
        Self(None)
    }

    pub(crate) fn report(&self, event: impl FnOnce(Instant) -> ModelCallEvent) {
        if let Some((observer, turn, call)) = &self.0 {
            observer.model_call(turn, call, event(Instant::now()));
        }
    }

    /// The bytes of one reply, if the observer wants them.
    pub(crate) fn raw(&self, secrets: &SecretSet) -> ObservedBytes {
        let wanted = self.0.as_ref().filter(|(_, turn, _)| turn.keep_raw);
        ObservedBytes(wanted.map(|call| RawReply {
            call: call.clone(),
            redactor: secrets.redactor(),
            held: Some(Vec::new()),
        }))
    }
}

/// The bytes of one reply on their way to the observer. They are held until the reply counts, since a reply
/// that is requested again is not part of the turn. Bytes still held are passed on at the end, also for a
/// call that is dropped.
pub(crate) struct ObservedBytes(Option<RawReply>);

struct RawReply {
    call: CallObserver,
    /// Holds bytes back that might begin a secret.
    redactor: StreamRedactor,
    /// `None` = the reply counts.
    held: Option<Vec<u8>>,
}

impl ObservedBytes {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some(raw) = &mut self.0 {
            let bytes = raw.redactor.push(bytes);
            raw.pass_on(&bytes);
        }
    }

    /// Marks the reply as part of the turn: some of it has been passed on, so it is not requested again.
    pub(crate) fn count(&mut self) {
        if let Some(raw) = &mut self.0 {
            raw.release();
        }
    }

    /// Drops the held bytes: another reply replaces this one.
    pub(crate) fn discard(&mut self) {
        self.0 = None;
    }
}

impl Drop for ObservedBytes {
    fn drop(&mut self) {
        if let Some(raw) = &mut self.0 {
            raw.release();
            let bytes = raw.redactor.finish();
            raw.pass_on(&bytes);
        }
    }
}

impl RawReply {
    fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.pass_on(&held);
        }
    }

    fn pass_on(&mut self, bytes: &[u8]) {
        match &mut self.held {
            Some(held) => held.extend_from_slice(bytes),
            None if bytes.is_empty() => {}
            None => {
                let (observer, turn, call) = &self.call;
                observer.raw(turn, call, bytes);
            }
        }
    }
}
