//! A model that runs in this process: its reply takes the same way through the decoder as the bytes of a provider.

use super::deadlines::{CallDeadlines, WaitPhase};
use super::{Upstream, UpstreamConfigError, failure};
use async_trait::async_trait;
use futures_util::stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::{Dialect, ModelRequest};
use tokio::sync::mpsc;
use tokio::time::timeout_at;
use tokio_util::task::AbortOnDropHandle;

/// Pieces of a reply that may wait for the turn to take them. A model that is faster waits.
const PIECES_MAX: usize = 16;
/// Address of models in this process, for lists; nothing is ever sent there.
const ADDRESS: &str = "http://in-process.invalid";

/// A model in this process: a local runtime, a router of your own, or a rule in a test.
#[async_trait]
pub trait InProcessModel: Send + Sync {
    /// Answers one request. The reply ends normally when this returns `Ok`. If it is no longer needed, the
    /// future is dropped at its next `await`.
    ///
    /// # Errors
    /// The failure of the call. Before any output was sent it may be retried or fall back as with any other
    /// upstream.
    async fn reply(&self, request: ModelRequest, reply: &mut ReplySender) -> Result<(), UpstreamFailure>;
}

/// Receives a reply piece by piece. The methods wait while the turn lags.
pub struct ReplySender {
    pieces: mpsc::Sender<Vec<u8>>,
    calls: u32,
    /// True once output was sent.
    started: bool,
}

impl fmt::Debug for ReplySender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySender").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl ReplySender {
    /// Visible text.
    pub async fn text(&mut self, text: impl Into<String>) {
        self.delta(json!({ "content": text.into() })).await;
    }

    /// Reasoning.
    pub async fn thinking(&mut self, text: impl Into<String>) {
        self.delta(json!({ "reasoning_content": text.into() })).await;
    }

    /// A call of a tool of the request, by its name there.
    pub async fn call(&mut self, name: &str, arguments: &Value) {
        let index = self.calls;
        self.calls += 1;
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let id = format!("call_{index}");
        self.delta(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
        )
        .await;
    }

    /// Tokens of the request and of the reply.
    pub async fn usage(&mut self, input_tokens: u64, output_tokens: u64) {
        let usage = json!({"prompt_tokens": input_tokens, "completion_tokens": output_tokens});
        self.send(&json!({"choices": [], "usage": usage})).await;
    }

    async fn delta(&mut self, delta: Value) {
        self.send(&json!({"choices": [{"index": 0, "delta": delta}]})).await;
    }

    async fn send(&mut self, chunk: &Value) {
        self.started = true;
        // The receiver is closed: the task is about to be dropped.
        let _ = self.pieces.send(format!("data: {chunk}\n\n").into_bytes()).await;
    }

    async fn end(&mut self, ended: Result<(), UpstreamFailure>) {
        let last = match ended {
            Ok(()) => {
                let reason = if self.calls > 0 { "tool_calls" } else { "stop" };
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
            }
            Err(failure) => return self.send(&json!({"error": {"message": failure.message}})).await,
        };
        self.send(&last).await;
        let _ = self.pieces.send(b"data: [DONE]\n\n".to_vec()).await;
    }
}

/// The model of an upstream.
#[derive(Clone)]
pub(crate) struct LocalModel(Arc<dyn InProcessModel>);

impl fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalModel")
    }
}

impl LocalModel {
    /// Starts the model; the response begins with its first piece.
    pub(super) async fn open(
        &self,
        request: ModelRequest,
        limits: &CallDeadlines,
    ) -> Result<reqwest::Response, UpstreamFailure> {
        let (pieces, mut receiver) = mpsc::channel(PIECES_MAX);
        let (model, mut sender) = (self.0.clone(), ReplySender { pieces, calls: 0, started: false });
        let mut task = AbortOnDropHandle::new(tokio::spawn(async move {
            match model.reply(request, &mut sender).await {
                Err(failure) if !sender.started => Err(failure),
                ended => {
                    sender.end(ended).await;
                    Ok(())
                }
            }
        }));
        let first = match timeout_at(limits.first_byte, receiver.recv()).await {
            Err(_) => return Err(limits.expired(WaitPhase::FirstByte)),
            Ok(Some(first)) => first,
            Ok(None) => {
                return Err(match (&mut task).await {
                    Ok(Err(failure)) => failure,
                    _ => failure::without_status(FailureKind::Broken, "the in-process model panicked"),
                });
            }
        };
        let body = stream::unfold((Some(first), receiver, task), |(first, mut receiver, task)| async {
            let piece = match first {
                Some(first) => first,
                None => receiver.recv().await?,
            };
            Some((Ok::<_, Infallible>(piece), (None, receiver, task)))
        });
        Ok(http::Response::new(reqwest::Body::wrap_stream(body)).into())
    }
}

impl Upstream {
    /// A model in this process under a name. All features of a turn apply to it: tools, approval, retries,
    /// the log.
    ///
    /// ```
    /// use throughline::engine::UpstreamFailure;
    /// use throughline::wire::ModelRequest;
    /// use throughline::{InProcessModel, ReplySender, Throughline, Upstream};
    ///
    /// struct Parrot;
    ///
    /// #[async_trait::async_trait]
    /// impl InProcessModel for Parrot {
    ///     async fn reply(&self, request: ModelRequest, reply: &mut ReplySender) -> Result<(), UpstreamFailure> {
    ///         reply.text(format!("{} messages so far.", request.messages.len())).await;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let app = Throughline::builder().upstream(Upstream::in_process("local", Parrot)?).model("parrot").build()?;
    /// assert_eq!(app.ask("Hello").await?.finish().await.text(), "1 messages so far.");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A name with `/`.
    pub fn in_process(
        name: impl Into<String>,
        model: impl InProcessModel + 'static,
    ) -> Result<Self, UpstreamConfigError> {
        let mut upstream = Self::new(name, Dialect::OpenaiChat, ADDRESS)?;
        upstream.local_model = Some(LocalModel(Arc::new(model)));
        Ok(upstream)
    }
}
