//! What the observer is told of one turn. Without an observer nothing is made, copied or counted.

use crate::observer::{KeepRaw, ModelCallFacts, ModelMoment, Observer, TurnFacts};
use crate::upstream::Upstream;
use std::sync::Arc;
use std::time::Instant;
use throughline_engine::Event;

/// One turn as the observer knows it.
#[derive(Clone)]
pub(crate) struct Watched(Option<(Arc<dyn Observer>, Arc<TurnFacts>)>);

/// One model call as the observer knows it.
#[derive(Clone)]
pub(crate) struct CallWatch(Option<WatchedCall>);

type WatchedCall = (Arc<dyn Observer>, Arc<TurnFacts>, Arc<ModelCallFacts>);

impl Watched {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>, facts: TurnFacts) -> Self {
        Self(observer.map(|observer| (observer, Arc::new(facts))))
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

impl CallWatch {
    /// Nobody watches.
    #[cfg(test)]
    pub(crate) fn nobody() -> Self {
        Self(None)
    }

    pub(crate) fn moment(&self, moment: impl FnOnce(Instant) -> ModelMoment) {
        if let Some((observer, turn, call)) = &self.0 {
            observer.model_call(turn, call, moment(Instant::now()));
        }
    }

    pub(crate) fn raw(&self, bytes: &[u8]) {
        if let Some((observer, turn, call)) =
            self.0.as_ref().filter(|(_, turn, _)| turn.keep_raw == KeepRaw::Yes)
        {
            observer.raw(turn, call, bytes);
        }
    }
}
