//! What the observer is told of one turn. Without an observer nothing is made, copied or counted.

use crate::observer::{KeepRaw, ModelCallFacts, ModelMoment, Observer, TurnFacts};
use crate::upstream::Upstream;
use std::sync::Arc;
use std::time::Instant;
use throughline_engine::Event;
use throughline_tools::{Redactor, Secrets};

/// One turn as the observer knows it. When it is dropped, however the turn ended, the observer is told that nothing more comes.
pub(crate) struct Watched(Option<(Arc<dyn Observer>, Arc<TurnFacts>)>);

/// One model call as the observer knows it.
#[derive(Clone)]
pub(crate) struct CallWatch(Option<WatchedCall>);

type WatchedCall = (Arc<dyn Observer>, Arc<TurnFacts>, Arc<ModelCallFacts>);

impl Watched {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>, facts: TurnFacts) -> Self {
        Self(observer.map(|observer| (observer, Arc::new(facts))))
    }

    pub(super) fn resumed(&self, events: &[Event]) {
        if let Some((observer, facts)) = self.0.as_ref().filter(|_| !events.is_empty()) {
            observer.resumed(facts, events);
        }
    }

    pub(super) fn logged(&self, events: &[Event]) {
        if let Some((observer, facts)) = &self.0 {
            observer.logged(facts, events);
        }
    }

    pub(super) fn call(&self, step: u32, attempt: u32, upstream: &Upstream, model: &str) -> CallWatch {
        CallWatch(self.0.as_ref().map(|(observer, facts)| {
            let call = ModelCallFacts {
                step,
                attempt,
                upstream: upstream.name.clone(),
                model: model.to_owned(),
                dialect: upstream.dialect,
            };
            (observer.clone(), facts.clone(), Arc::new(call))
        }))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some((observer, facts)) = &self.0 {
            observer.over(facts);
        }
    }
}

impl CallWatch {
    /// Nobody watches.
    pub(crate) fn nobody() -> Self {
        Self(None)
    }

    pub(crate) fn moment(&self, moment: impl FnOnce(Instant) -> ModelMoment) {
        if let Some((observer, turn, call)) = &self.0 {
            observer.model_call(turn, call, moment(Instant::now()));
        }
    }

    /// The bytes of one reply, as far as anybody keeps them.
    pub(crate) fn raw(&self, secrets: &Secrets) -> RawWatch {
        let wanted = self.0.as_ref().filter(|(_, turn, _)| turn.keep_raw == KeepRaw::Yes);
        RawWatch(wanted.map(|call| (call.clone(), secrets.redactor())))
    }
}

/// The bytes of one reply on their way to the observer. What is held back, because it might be the beginning of a secret, is
/// told at the end, also of a call that is given up. R: R4, S5
pub(crate) struct RawWatch(Option<(WatchedCall, Redactor)>);

impl RawWatch {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Some((call, redactor)) = &mut self.0 {
            tell(call, &redactor.push(bytes));
        }
    }
}

impl Drop for RawWatch {
    fn drop(&mut self) {
        if let Some((call, redactor)) = &mut self.0 {
            tell(call, &redactor.finish());
        }
    }
}

fn tell((observer, turn, call): &WatchedCall, bytes: &[u8]) {
    if !bytes.is_empty() {
        observer.raw(turn, call, bytes);
    }
}
