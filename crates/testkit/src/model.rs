//! The model behind a fake upstream.

use crate::parsed_request::ParsedRequest;
use crate::quirk::PlantedQuirk;
use crate::script::ModelScript;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// A fake model: a function from a request to a script.
///
/// `reply` must return immediately (silence is a move of the script) and may be called from several tasks.
///
/// ```
/// use throughline_testkit::{FakeModel, ModelScript, ParsedRequest};
///
/// struct Parrot;
///
/// impl FakeModel for Parrot {
///     fn reply(&self, seen: &ParsedRequest) -> ModelScript {
///         ModelScript::new().say(seen.user_text())
///     }
/// }
/// ```
pub trait FakeModel: Send + Sync + 'static {
    /// The script for this request, which has passed the dialect's checks.
    fn reply(&self, seen: &ParsedRequest) -> ModelScript;

    /// Names for the list of models.
    fn names(&self) -> Vec<String> {
        vec!["mock".into()]
    }

    /// The key that requests must show; `None` = any, or none.
    fn key(&self) -> Option<&str> {
        None
    }

    /// Quirks of its upstream.
    fn quirks(&self) -> &[PlantedQuirk] {
        &[]
    }
}

impl<F: Fn(&ParsedRequest) -> ModelScript + Send + Sync + 'static> FakeModel for F {
    fn reply(&self, seen: &ParsedRequest) -> ModelScript {
        self(seen)
    }
}

/// Plays one script per request, in order; when they are used up, the last one again.
///
/// ```
/// use throughline_testkit::{ModelScript, ScriptQueue};
///
/// let model = ScriptQueue::new([ModelScript::rate_limited(1), ModelScript::new().say("Now it works.")]);
/// # drop(model);
/// ```
#[derive(Debug)]
pub struct ScriptQueue(Mutex<VecDeque<ModelScript>>);

impl ScriptQueue {
    /// A queue of replies. Empty = every reply is empty.
    pub fn new(scripts: impl IntoIterator<Item = ModelScript>) -> Self {
        Self(Mutex::new(scripts.into_iter().collect()))
    }
}

impl FakeModel for ScriptQueue {
    fn reply(&self, _: &ParsedRequest) -> ModelScript {
        let mut scripts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = if scripts.len() > 1 { scripts.pop_front() } else { scripts.front().cloned() };
        next.unwrap_or_default()
    }
}
