//! Changes that sources of tools make to requests: placeholders, and messages that were preprocessed.

use std::sync::Arc;
use throughline_tools::SourceHook;
use throughline_wire::{Message, ModelRequest};
use tokio::sync::Mutex;

/// The hooks of a turn.
#[derive(Clone, Default)]
pub(super) struct RequestHooks {
    hooks: Arc<[Arc<dyn SourceHook>]>,
    /// Locked while preprocessors run: they run once on the initial input of a turn, also if the request is
    /// retried.
    preprocessed: Arc<Mutex<Option<Preprocessed>>>,
}

/// The messages that a turn began with, before and after.
struct Preprocessed {
    given: (Option<String>, Vec<Message>),
    made: (Option<String>, Vec<Message>),
}

impl RequestHooks {
    pub(super) fn new(hooks: Vec<Arc<dyn SourceHook>>) -> Self {
        Self { hooks: hooks.into(), preprocessed: Arc::default() }
    }

    /// True if messages are changed, which takes their pictures as well.
    pub(super) fn has_preprocessors(&self) -> bool {
        self.hooks.iter().any(|hook| hook.has_preprocessors())
    }

    /// Applies the hooks to a request. Later messages follow the preprocessed ones unchanged.
    pub(super) async fn apply(&self, request: &mut ModelRequest) {
        if self.has_preprocessors() {
            self.preprocess(request).await;
        }
        for hook in self.hooks.iter() {
            hook.fill_placeholders(request).await;
        }
    }

    async fn preprocess(&self, request: &mut ModelRequest) {
        let mut preprocessed = self.preprocessed.lock().await;
        // Another beginning, because old results were shortened: all of it is preprocessed again.
        let known = preprocessed.as_ref().filter(|known| {
            known.given.0 == request.instructions && request.messages.starts_with(&known.given.1)
        });
        if let Some(Preprocessed { given, made }) = known {
            let since = request.messages.split_off(given.1.len());
            (request.instructions, request.messages) = made.clone();
            request.messages.extend(since);
            return;
        }
        let given = (request.instructions.clone(), request.messages.clone());
        for hook in self.hooks.iter() {
            hook.preprocess(request).await;
        }
        let made = (request.instructions.clone(), request.messages.clone());
        *preprocessed = Some(Preprocessed { given, made });
    }
}
