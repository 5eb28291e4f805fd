//! Effects of a source besides its tools: placeholders of prompts, changed messages, results that arrive later.

use async_trait::async_trait;
use throughline_wire::ModelRequest;

/// Path of the address at which results arrive; a token, the plugin and the task follow.
pub const CALLBACK_PATH: &str = "/plugin-callback";

/// The part of a [`ToolSource`](crate::ToolSource) that works on requests to models.
#[async_trait]
pub trait SourceHook: Send + Sync {
    /// Parts of the source other than tools, for lists.
    fn additions(&self) -> Vec<SourceAddition>;

    /// True if [`preprocess`](Self::preprocess) changes anything.
    fn has_preprocessors(&self) -> bool;

    /// Changes instructions and messages. Called once, with the request that a turn begins with.
    async fn preprocess(&self, request: &mut ModelRequest);

    /// Fills placeholders. Called for each request.
    async fn fill_placeholders(&self, request: &mut ModelRequest);

    /// The address of the server, `http://127.0.0.1:8080`, at which callbacks arrive from now on.
    fn set_callback_base(&self, base: &str);

    /// A result that arrived. `None` = it is for another source.
    async fn accept_callback(&self, callback: &SourceCallback) -> Option<Result<(), CallbackError>>;
}

/// A part of a source that is no tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAddition {
    /// Name of the source.
    pub source: String,
    /// Name of the addition.
    pub name: String,
    /// Kind, as in the source's own manifest.
    pub kind: &'static str,
    /// Effect, in a sentence for people.
    pub summary: String,
}

/// A result that a program outside sends after its call has ended.
#[derive(Clone, Debug)]
pub struct SourceCallback {
    /// Proof that the sender was started by us.
    pub token: String,
    /// Name of the sending plugin.
    pub plugin: String,
    /// Id of the task, as the sender has chosen it.
    pub task: String,
    /// Body, as JSON.
    pub body: Vec<u8>,
}

/// Error of a refused callback.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallbackError {
    /// No such plugin, or an id that cannot be one.
    #[error("there is no asynchronous plugin of this name, or the id of the task cannot be one")]
    UnknownTask,
    /// The body is no JSON object.
    #[error("the body is not a JSON object")]
    NotJson,
    /// The body is too large.
    #[error("the body has more than {bytes_max} bytes")]
    TooLarge {
        /// Limit in bytes.
        bytes_max: usize,
    },
    /// The body cannot be stored.
    #[error("the result cannot be stored: {why}")]
    NotStored {
        /// Reason given by the system.
        why: String,
    },
}
