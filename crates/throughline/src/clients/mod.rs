//! Connected pages and apps that run tools: declarations, calls and answers.
//!
//! A client belongs to one user: its tools are offered in that user's turns only, and only that user may answer for
//! it. The turn machine decides which answer is first and in time; this module only routes.

mod closed_calls;
mod handle;
mod request_tools;
mod tool_spec;
mod turn;

pub use handle::{ClientEvent, ClientHandle, IncomingCall};
pub use request_tools::REQUEST_TOOLS_MAX;
pub(crate) use request_tools::request_tools;
pub use tool_spec::{CLIENT_TOOLS_MAX, ClientError, ClientToolSpec};
pub(crate) use turn::{CallOffer, TurnClientTool, TurnClients};

use crate::turn::{ClientAnswerResult, CommandSender, TurnCommand};
use closed_calls::ClosedCalls;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use throughline_engine::{ClientAnswer, REQUESTER, TurnId};
use throughline_tools::{Tool, ToolFingerprint, ToolRegistry};
use throughline_wire::{CallId, ToolName, WireName};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tool_spec::DeclaredTools;

/// Time for which a client's tools stay offered after its connection is lost, unless the application sets another.
pub const CLIENT_GRACE_DEFAULT: Duration = Duration::from_secs(60);

/// Owner of a client. `None` = the one user of an application without accounts.
pub(crate) type ClientOwner = Option<String>;

/// The clients of an application. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct ClientRegistry(Arc<ClientRegistryInner>);

struct ClientRegistryInner {
    state: Mutex<ClientRegistryState>,
    grace: Duration,
}

#[derive(Default)]
struct ClientRegistryState {
    /// Clients by user and id: equal ids of two users are different clients.
    clients: BTreeMap<(ClientOwner, String), ConnectedClient>,
    /// Running turns: owner and command channel.
    turns: HashMap<TurnId, (ClientOwner, CommandSender)>,
    /// Calls that are offered and have no outcome.
    open_calls: HashMap<CallId, OfferedCall>,
    /// Recently closed calls, with how they ended.
    closed_calls: ClosedCalls,
    /// Number of connections so far: a later connection takes precedence over an earlier one.
    connections: u64,
    /// Number of changes of declared tools.
    revision: watch::Sender<u64>,
    merged: Option<MergedRegistry>,
}

struct ConnectedClient {
    declared: DeclaredTools,
    connection: ClientConnection,
    /// Number of the client's latest connection.
    connection_seq: u64,
}

enum ClientConnection {
    Open(mpsc::UnboundedSender<ClientEvent>),
    /// Lost at this time.
    Lost(Instant),
}

struct OfferedCall {
    /// Owner and id of the client.
    client: (ClientOwner, String),
    /// Definition under which the tool was offered; `None` = the call is not sent to a client: the requester
    /// of the turn runs it.
    definition: Option<OfferedDefinition>,
    /// The connection that it was last sent to; 0 = none.
    sent_to: u64,
    /// The call was cancelled. The client that received it may still answer.
    is_cancelled: bool,
    commands: CommandSender,
    call: IncomingCall,
}

/// The definition for which a call was offered. A call is not run under another definition.
enum OfferedDefinition {
    Declared(ClientToolSpec),
    /// An earlier process offered it: its fingerprint under a name at upstreams, with what clients take from these tools.
    Fingerprint(String, WireName, Arc<ToolRegistry>),
}

impl OfferedDefinition {
    fn is(&self, declared: &ClientToolSpec) -> bool {
        match self {
            Self::Declared(spec) => spec == declared,
            Self::Fingerprint(fingerprint, wire_name, base) => {
                let tool = declared.to_tool(base).definition();
                ToolFingerprint::of(&tool, wire_name).to_string() == *fingerprint
            }
        }
    }
}

/// The last registry that was made with clients' tools, and of what.
struct MergedRegistry {
    base: Weak<ToolRegistry>,
    revision: u64,
    user: ClientOwner,
    registry: Arc<ToolRegistry>,
}

impl MergedRegistry {
    fn new(
        base: &Arc<ToolRegistry>,
        revision: u64,
        user: ClientOwner,
        tools: impl Iterator<Item = Arc<dyn Tool>>,
    ) -> Self {
        // Each set was checked when it was declared; together they can only share names, and then the later one counts.
        let registry = base.with_tools(tools).map_or_else(|_| base.clone(), Arc::new);
        Self { base: Arc::downgrade(base), revision, user, registry }
    }

    fn is_of(&self, base: &Arc<ToolRegistry>, revision: u64) -> bool {
        self.revision == revision && self.base.upgrade().is_some_and(|known| Arc::ptr_eq(&known, base))
    }
}

impl ClientRegistry {
    pub(crate) fn new(grace: Duration) -> Self {
        Self(Arc::new(ClientRegistryInner { state: Mutex::default(), grace }))
    }

    fn state(&self) -> MutexGuard<'_, ClientRegistryState> {
        // Every change is made whole before the lock is let go.
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.expire_disconnected(self.0.grace);
        state
    }

    /// Connects a client, or reconnects it: calls that are still open for it are offered again.
    pub(crate) fn connect(
        &self,
        client_id: String,
        user: ClientOwner,
        tools: Vec<ClientToolSpec>,
    ) -> Result<ClientHandle, ClientError> {
        let declared = DeclaredTools::new(tools)?;
        if client_id == REQUESTER {
            return Err(ClientError::Reserved { client_id });
        }
        let mut state = self.state();
        // The number of events is bounded although the channel is not: there are no more events than calls,
        // and those have limits.
        let (events, incoming) = mpsc::unbounded_channel();
        state.connections += 1;
        let connection_seq = state.connections;
        let id = (user, client_id);
        let before = state.clients.get(&id);
        let is_newest = |before: &&ConnectedClient| {
            let newest = state.clients_of(&id.0).last().map(|newest| newest.connection_seq);
            newest == Some(before.connection_seq)
        };
        let is_unchanged = before.filter(is_newest).is_some_and(|before| before.declared == declared);
        let client = ConnectedClient { declared, connection: ClientConnection::Open(events), connection_seq };
        state.clients.insert(id.clone(), client);
        state.declared(!is_unchanged);
        state.send_calls(&id);
        drop(state);
        Ok(ClientHandle::new(self.clone(), id, connection_seq, incoming))
    }

    fn declare(
        &self,
        id: &(ClientOwner, String),
        connection_seq: u64,
        tools: Vec<ClientToolSpec>,
    ) -> Result<(), ClientError> {
        let declared = DeclaredTools::new(tools)?;
        let mut state = self.state();
        if let Some(client) =
            state.clients.get_mut(id).filter(|client| client.connection_seq == connection_seq)
        {
            client.declared = declared;
            state.declared(true);
            state.send_calls(id);
        }
        Ok(())
    }

    fn disconnect(&self, id: &(ClientOwner, String), connection_seq: u64) {
        let mut state = self.state();
        // A later connection of the same client is not ended by this one.
        if let Some(client) =
            state.clients.get_mut(id).filter(|client| client.connection_seq == connection_seq)
        {
            client.connection = ClientConnection::Lost(Instant::now());
        }
    }

    /// The tools of a turn of this user: those of `base`, with the user's clients' tools replacing any of the same
    /// name.
    pub(crate) fn registry(&self, base: &Arc<ToolRegistry>, user: &ClientOwner) -> Arc<ToolRegistry> {
        let (revision, tools) = {
            let state = self.state();
            let revision = *state.revision.borrow();
            let known = state.merged.as_ref().filter(|merged| merged.is_of(base, revision));
            if let Some(merged) = known.filter(|merged| merged.user == *user) {
                return merged.registry.clone();
            }
            let mut tools = BTreeMap::new();
            for client in state.clients_of(user) {
                for tool in client.declared.tools(base) {
                    tools.insert(tool.definition().name, tool);
                }
            }
            (revision, tools)
        };
        if tools.is_empty() {
            return base.clone();
        }
        let merged = MergedRegistry::new(base, revision, user.clone(), tools.into_values());
        let registry = merged.registry.clone();
        self.state().merged = Some(merged);
        registry
    }

    /// The client that runs a client-side tool in a turn of this user: of several, the one that connected last.
    pub(crate) fn client_of(&self, tool: &ToolName, user: &ClientOwner) -> Option<String> {
        let state = self.state();
        let newest = state
            .clients
            .iter()
            .filter(|((owner, _), client)| owner == user && client.declared.contains(tool))
            .max_by_key(|(_, client)| client.connection_seq);
        newest.map(|((_, client_id), _)| client_id.clone())
    }

    /// Answers a call in a client's name.
    pub(crate) async fn answer(
        &self,
        user: &ClientOwner,
        call: &CallId,
        attempt: Option<u32>,
        answer: ClientAnswer,
    ) -> ClientAnswerResult {
        let commands = {
            let state = self.state();
            match state.open_calls.get(call) {
                // A reader of the log may know of a call a moment before it has been offered here.
                None => match (state.closed_calls.lookup(call, user), state.turn_of(call)) {
                    (ClientAnswerResult::Unknown, Some((owner, _))) if owner != user => {
                        return ClientAnswerResult::WrongUser;
                    }
                    (ClientAnswerResult::Unknown, Some((_, commands))) => commands.clone(),
                    (known, _) => return known,
                },
                Some(open) if open.client.0 != *user => return ClientAnswerResult::WrongUser,
                Some(open) => open.commands.clone(),
            }
        };
        let call = call.clone();
        let answered = commands.ask(|reply| TurnCommand::ClientAnswer { call, attempt, answer, reply });
        // The turn ended without a reply: the answer was not accepted.
        answered.await.unwrap_or(ClientAnswerResult::AlreadyClosed)
    }
}

impl ClientRegistryState {
    /// The running turn that a call belongs to: its id begins with the turn's.
    fn turn_of(&self, call: &CallId) -> Option<&(ClientOwner, CommandSender)> {
        let (turn, _) = call.as_str().rsplit_once('.')?;
        self.turns.get(&TurnId::new(turn))
    }

    /// Clients of a user, the one that connected last at the end.
    fn clients_of(&self, user: &ClientOwner) -> Vec<&ConnectedClient> {
        let of_user = self.clients.iter().filter(|((owner, _), _)| owner == user);
        let mut clients: Vec<&ConnectedClient> = of_user.map(|(_, client)| client).collect();
        clients.sort_unstable_by_key(|client| client.connection_seq);
        clients
    }

    fn expire_disconnected(&mut self, grace: Duration) {
        let before = self.clients.len();
        self.clients.retain(|_, client| match client.connection {
            ClientConnection::Open(_) => true,
            ClientConnection::Lost(at) => at.elapsed() < grace,
        });
        self.declared(self.clients.len() != before);
    }

    /// Notes that tools were declared or withdrawn.
    fn declared(&self, is_changed: bool) {
        if is_changed {
            self.revision.send_modify(|revision| *revision += 1);
        }
    }

    /// Sends a client the open calls that its connection does not have, if it declares the tools for which they were offered.
    fn send_calls(&mut self, id: &(ClientOwner, String)) {
        let Some(ConnectedClient { declared, connection: ClientConnection::Open(events), connection_seq }) =
            self.clients.get(id)
        else {
            return;
        };
        for open in self.open_calls.values_mut() {
            if open.client != *id || open.sent_to == *connection_seq || open.is_cancelled {
                continue;
            }
            let (spec, definition) = (declared.spec(&open.call.tool), open.definition.as_ref());
            if spec.zip(definition).is_some_and(|(spec, definition)| definition.is(spec)) {
                open.sent_to = *connection_seq;
                // A client that has just disconnected receives the call again when it reconnects.
                let _ = events.send(ClientEvent::Call(open.call.clone()));
            }
        }
    }

    fn notify(&self, id: &(ClientOwner, String), event: ClientEvent) {
        if let Some(ConnectedClient { connection: ClientConnection::Open(events), .. }) = self.clients.get(id)
        {
            // A client that has just disconnected receives its open calls again when it reconnects.
            let _ = events.send(event);
        }
    }
}

impl fmt::Debug for ClientRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientRegistry").field(&self.state().clients.keys()).finish()
    }
}
