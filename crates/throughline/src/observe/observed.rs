//! Notifications of one turn to the observer. Without an observer nothing is created, copied or counted.

use super::{KeepRaw, ModelCallEvent, ModelCallFacts, TurnFacts, TurnObserver};
use std::sync::Arc;
use std::time::Instant;
use throughline_engine::Event;
use throughline_tools::{SecretSet, StreamRedactor};

/// One turn as the observer sees it. Dropping it, however the turn ended, notifies the observer of the end.
pub(crate) struct ObservedTurn(Option<(Arc<dyn TurnObserver>, Arc<TurnFacts>)>);

/// One model call as the observer knows it.
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
        let wanted = self.0.as_ref().filter(|(_, turn, _)| turn.keep_raw == KeepRaw::Yes);
        ObservedBytes(wanted.map(|call| (call.clone(), secrets.redactor())))
    }
}

/// The bytes of one reply on their way to the observer. Bytes held back because they might begin a secret are passed
/// on at the end, also for a call that is given up.
pub(crate) struct ObservedBytes(Option<(CallObserver, StreamRedactor)>);

impl ObservedBytes {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some((call, redactor)) = &mut self.0 {
            emit_bytes(call, &redactor.push(bytes));
        }
    }
}

impl Drop for ObservedBytes {
    fn drop(&mut self) {
        if let Some((call, redactor)) = &mut self.0 {
            emit_bytes(call, &redactor.finish());
        }
    }
}

fn emit_bytes((observer, turn, call): &CallObserver, bytes: &[u8]) {
    if !bytes.is_empty() {
        observer.raw(turn, call, bytes);
    }
}
