//! One connection of a client.

use super::{ClientAnswerResult, ClientError, ClientOwner, ClientRegistry, ClientToolSpec};
use serde::Serialize;
use serde_json::Value;
use throughline_engine::{ClientAnswer, TurnId, UnixMillis};
use throughline_wire::{CallId, ToolName};
use tokio::sync::mpsc;

/// A connected client: the calls that it is asked to run, and its answers. Dropping it is losing the connection: its tools
/// stay offered for a while, and calls wait, so that a page may be reloaded.
///
/// ```
/// # use throughline_testkit as testkit;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # use throughline::{Throughline, Upstream, wire::Dialect};
/// use serde_json::json;
/// use throughline::engine::{ClientAnswer, ClientStatus};
/// use throughline::{ClientEvent, ClientToolSpec};
/// # let server = testkit::Upstream::start(testkit::Queue::new([
/// #     testkit::Script::new().call("live2d_expression", json!({"name": "smile"})), testkit::Script::new().say("Hello!"),
/// # ])).await?;
/// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::Dialect::OpenaiChat))?;
/// # let app = Throughline::builder().upstream(upstream).model("demo").tools(throughline::tools::builtin::standard()).build()?;
/// let mut page = app.connect_client("page-1", None, vec![ClientToolSpec::new("live2d.expression")])?;
/// let turn = app.ask("Say hello with a smile.").await?;
///
/// let Some(ClientEvent::Call(call)) = page.next().await else { panic!("a call") };
/// assert_eq!(call.arguments, json!({"name": "smile"}));
/// let smiled = ClientAnswer { status: ClientStatus::Success, output: json!(null), applied: Some(true) };
/// assert_eq!(page.answer(&call, smiled).await, throughline::ClientAnswerResult::CommandAck);
///
/// let message = turn.finish().await;
/// assert_eq!(message.calls().next().and_then(|call| call.applied), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ClientHandle {
    clients: ClientRegistry,
    /// Whose it is, and what that one calls it.
    id: (ClientOwner, String),
    /// Which connection of this client.
    connection_seq: u64,
    incoming: mpsc::UnboundedReceiver<ClientEvent>,
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum ClientEvent {
    /// It is asked to run a call. After a lost connection or a restart it may be asked once more: by `call` and `attempt` it
    /// knows whether it has run it.
    Call(IncomingCall),
    /// A call is no longer wanted. It may still answer, with what truthfully became of it.
    Cancelled {
        /// Which.
        call: CallId,
    },
}

/// A call that a client is asked to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IncomingCall {
    /// Which turn it belongs to.
    pub turn: TurnId,
    /// Which call: the key of the answer.
    pub call: CallId,
    /// Which start of it, from 1.
    pub attempt: u32,
    /// Which of the client's tools.
    pub tool: ToolName,
    /// With what; it fits the tool's schema.
    pub arguments: Value,
    /// When an answer is too late, in milliseconds since 1970.
    pub until: UnixMillis,
}

impl ClientHandle {
    pub(super) fn new(
        clients: ClientRegistry,
        id: (ClientOwner, String),
        connection_seq: u64,
        incoming: mpsc::UnboundedReceiver<ClientEvent>,
    ) -> Self {
        Self { clients, id, connection_seq, incoming }
    }

    /// The client's id.
    pub fn id(&self) -> &str {
        &self.id.1
    }

    /// What the client is told next; `None` when the same client has connected anew. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        self.incoming.recv().await
    }

    /// These are the client's tools from now on, in turns that begin afterwards.
    ///
    /// # Errors
    /// What cannot be declared; then everything stays as it was.
    pub fn declare(&self, tools: Vec<ClientToolSpec>) -> Result<(), ClientError> {
        self.clients.declare(&self.id, self.connection_seq, tools)
    }

    /// Says how a call ended. The first answer in time wins, whoever of the user's clients it comes from.
    pub async fn answer(&self, call: &IncomingCall, answer: ClientAnswer) -> ClientAnswerResult {
        self.clients.answer(&self.id.0, &call.call, Some(call.attempt), answer).await
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        self.clients.disconnect(&self.id, self.connection_seq);
    }
}
