//! One connection of a client.

use super::{ClientError, ClientOwner, ClientRegistry, ClientToolSpec};
use crate::turn::ClientAnswerResult;
use serde::Serialize;
use serde_json::Value;
use throughline_engine::{ClientAnswer, TurnId, UnixMillis};
use throughline_wire::{CallId, ToolName};
use tokio::sync::mpsc;

/// A connected client: the calls that it receives, and its answers. Dropping it disconnects: its tools stay offered
/// for a grace period and calls wait, so that a page can be reloaded.
///
/// ```
/// # use throughline_testkit as testkit;
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # use throughline::{Throughline, Upstream, wire::Dialect};
/// use serde_json::json;
/// use throughline::engine::{ClientAnswer, ClientStatus};
/// use throughline::{ClientEvent, ClientToolSpec};
/// # let server = testkit::FakeUpstream::start(testkit::ScriptQueue::new([
/// #     testkit::ModelScript::new().call("live2d_expression", json!({"name": "smile"})), testkit::ModelScript::new().say("Hello!"),
/// # ])).await?;
/// # let upstream = Upstream::new("demo", Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat))?;
/// # let app = Throughline::builder().upstream(upstream).model("demo").tools(throughline::tools::builtin::standard()).build()?;
/// let mut page = app.connect_client("page-1", None, vec![ClientToolSpec::new("live2d.expression")])?;
/// let turn = app.ask("Say hello with a smile.").await?;
///
/// let Some(ClientEvent::Call(call)) = page.next().await else { panic!("a call") };
/// assert_eq!(call.arguments, json!({"name": "smile"}));
/// let smiled = ClientAnswer { status: ClientStatus::Success, output: json!(null), applied: Some(true) };
/// assert_eq!(page.answer(&call, smiled).await, throughline::ClientAnswerResult::Accepted);
///
/// let message = turn.finish().await;
/// assert_eq!(message.calls().next().and_then(|call| call.applied), Some(true));
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ClientHandle {
    clients: ClientRegistry,
    /// Owner, and the owner's id of the client.
    id: (ClientOwner, String),
    /// Number of this client's connection.
    connection_seq: u64,
    incoming: mpsc::UnboundedReceiver<ClientEvent>,
}

/// An event for a client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientEvent {
    /// A call for the client to run. After a lost connection or a restart it may arrive again: `call` and
    /// `attempt` tell whether the client has already run it.
    Call(IncomingCall),
    /// A call was cancelled. The client may still answer with its actual outcome.
    Cancelled {
        /// The call.
        call: CallId,
    },
}

/// A call that a client has to run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IncomingCall {
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The call: the key of the answer.
    pub call: CallId,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The client's tool.
    pub tool: ToolName,
    /// Arguments of the call; they fit the tool's schema.
    pub arguments: Value,
    /// Deadline of the answer, in milliseconds since 1970.
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

    /// The next event; `None` once the same client has connected again. Cancel-safe.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        self.incoming.recv().await
    }

    /// Replaces the client's tools. Turns that start afterwards are offered the new ones. In running turns a
    /// call of a withdrawn tool ends as `no_viewer`, and a call of a redefined tool asks a person.
    ///
    /// # Errors
    /// The tools that cannot be declared; the previous declaration stays in effect.
    pub fn declare(&self, tools: Vec<ClientToolSpec>) -> Result<(), ClientError> {
        self.clients.declare(&self.id, self.connection_seq, tools)
    }

    /// Reports how a call ended. The first answer in time wins, from any of the user's clients.
    pub async fn answer(&self, call: &IncomingCall, answer: ClientAnswer) -> ClientAnswerResult {
        self.clients.answer(&self.id.0, &call.call, Some(call.attempt), answer).await
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        self.clients.disconnect(&self.id, self.connection_seq);
    }
}
