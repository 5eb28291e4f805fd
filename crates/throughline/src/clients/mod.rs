//! Connected pages and apps that run tools of their own: declarations, calls and answers.
//!
//! A client belongs to one user: its tools are offered in that user's turns only, and only that user may answer for
//! it. The turn machine decides which answer is first and in time; this module only routes.

mod closed_calls;
mod handle;
mod request_tools;
mod tool_spec;

pub use handle::{ClientEvent, ClientHandle, IncomingCall};
pub use request_tools::REQUEST_TOOLS_MAX;
pub(crate) use request_tools::request_tools;
pub use tool_spec::{CLIENT_TOOLS_MAX, ClientError, ClientToolSpec};

use crate::driver::RegistryProvider;
use crate::turn::{ClientAnswerResult, TurnCommand};
use closed_calls::ClosedCalls;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use throughline_engine::{
    CallRunner, CallStatus, ClientAnswer, Event, EventKind, OfferedTool, REQUESTER, TurnId, UnixMillis,
};
use throughline_tools::{RegisteredTool, Tool, ToolRegistry};
use throughline_wire::{CallId, ToolName, WireName};
use tokio::sync::{mpsc, oneshot};
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
    /// By user and id: what two users call their clients is nothing to each other.
    clients: BTreeMap<(ClientOwner, String), ConnectedClient>,
    /// Running turns: owner and command channel.
    turns: HashMap<TurnId, (ClientOwner, mpsc::Sender<Box<TurnCommand>>)>,
    /// Calls that are offered and have no outcome.
    open_calls: HashMap<CallId, OfferedCall>,
    /// Recently closed calls, with how they ended.
    closed_calls: ClosedCalls,
    /// Counts connections: a later one comes before an earlier one.
    connections: u64,
    /// Counts changes of what is declared.
    revision: u64,
    merged: Option<MergedRegistry>,
}

struct ConnectedClient {
    declared: DeclaredTools,
    connection: ClientConnection,
    /// Its last connection's number.
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
    /// The tool for which it was offered; `None` = whatever the client declares under that name.
    spec: Option<ClientToolSpec>,
    /// The connection that it was last sent to; 0 = none.
    sent_to: u64,
    /// It is not wanted any more: whoever has it may still answer.
    is_cancelled: bool,
    commands: mpsc::Sender<Box<TurnCommand>>,
    call: IncomingCall,
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

    /// A client connects, or comes back: calls that are still open for it are offered once more.
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
        // Unbounded is bounded here: there are no more events than calls, and those have their own limits.
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
        state.revision += u64::from(!is_unchanged);
        let client = ConnectedClient { declared, connection: ClientConnection::Open(events), connection_seq };
        state.clients.insert(id.clone(), client);
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
            state.revision += 1;
            state.send_calls(id);
        }
        Ok(())
    }

    fn disconnect(&self, id: &(ClientOwner, String), connection_seq: u64) {
        let mut state = self.state();
        // A later connection of the same client is not this one's to end.
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
            let known = state.merged.as_ref().filter(|merged| merged.is_of(base, state.revision));
            if let Some(merged) = known.filter(|merged| merged.user == *user) {
                return merged.registry.clone();
            }
            let mut tools = BTreeMap::new();
            for client in state.clients_of(user) {
                for tool in client.declared.tools(base) {
                    tools.insert(tool.definition().name, tool);
                }
            }
            (state.revision, tools)
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

    /// Somebody answers for a client.
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
                // Whoever reads the log may know of a call a moment before it has been offered here.
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
        let (reply, result) = oneshot::channel();
        let command = TurnCommand::ClientAnswer { call: call.clone(), attempt, answer, reply };
        if commands.send(Box::new(command)).await.is_err() {
            return ClientAnswerResult::AlreadyClosed;
        }
        // The turn went away without a word: nothing was taken.
        result.await.unwrap_or(ClientAnswerResult::AlreadyClosed)
    }
}

impl ClientRegistryState {
    /// The running turn that a call belongs to: its id begins with the turn's.
    fn turn_of(&self, call: &CallId) -> Option<&(ClientOwner, mpsc::Sender<Box<TurnCommand>>)> {
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
        self.revision += u64::from(self.clients.len() != before);
    }

    /// Sends a client the open calls that its connection does not have, if it declares the tools for which they were offered:
    /// what was meant for one definition is not run with another.
    fn send_calls(&mut self, id: &(ClientOwner, String)) {
        let Some(ConnectedClient { declared, connection: ClientConnection::Open(events), connection_seq }) =
            self.clients.get(id)
        else {
            return;
        };
        for open in self.open_calls.values_mut() {
            let declares = |tool: &ToolName| match &open.spec {
                Some(spec) => declared.spec(tool) == Some(spec),
                None => declared.contains(tool),
            };
            let is_new = open.sent_to != *connection_seq && !open.is_cancelled;
            if open.client == *id && is_new && declares(&open.call.tool) {
                open.sent_to = *connection_seq;
                // A client that has just gone will be asked again when it comes back.
                let _ = events.send(ClientEvent::Call(open.call.clone()));
            }
        }
    }

    fn notify(&self, id: &(ClientOwner, String), event: ClientEvent) {
        if let Some(ConnectedClient { connection: ClientConnection::Open(events), .. }) = self.clients.get(id)
        {
            // A client that has just gone will be asked again when it comes back.
            let _ = events.send(event);
        }
    }
}

/// A tool that was offered for a client, as it is now.
pub(crate) enum TurnClientTool {
    /// Its client is gone, or declares it no more.
    Withdrawn,
    /// Its client is gone, and may not have had the time to come back since a restart.
    Away,
    Declared(ClientToolSpec, Box<RegisteredTool>),
}

/// Outcome of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum CallOffer {
    Made,
    /// The tool is another one by now, or none.
    Redefined,
}

/// The clients as one turn sees them. Dropping it takes back everything that the turn still offers.
pub(crate) struct TurnClients {
    clients: ClientRegistry,
    turn: TurnId,
    user: ClientOwner,
    commands: mpsc::Sender<Box<TurnCommand>>,
    /// The tools of clients: the client that each was offered for, and its name at upstreams.
    offered: BTreeMap<ToolName, (String, WireName)>,
    /// The tools without those of clients.
    base: RegistryProvider,
    /// Another process began the turn: its clients have to connect to this one first.
    is_resumed: bool,
}

impl TurnClients {
    pub(crate) fn new(
        clients: ClientRegistry,
        turn: TurnId,
        user: ClientOwner,
        commands: mpsc::Sender<Box<TurnCommand>>,
        (offered, base): (&[OfferedTool], RegistryProvider),
        is_resumed: bool,
    ) -> Self {
        clients.state().turns.insert(turn.clone(), (user.clone(), commands.clone()));
        let by_client = |tool: &OfferedTool| match &tool.runs {
            CallRunner::Client { client_id } => Some((client_id.clone()?, tool.wire_name.clone())),
            _ => None,
        };
        let offered = offered.iter().filter_map(|tool| Some((tool.name.clone(), by_client(tool)?)));
        Self { clients, turn, user, commands, offered: offered.collect(), base, is_resumed }
    }

    /// A tool that was offered for a client, as that client declares it now, whatever others of the user have declared since.
    /// `None` = it is no client's.
    pub(crate) fn tool(&self, name: &ToolName) -> Option<TurnClientTool> {
        let (client_id, wire_name) = self.offered.get(name)?;
        let spec = {
            let state = self.clients.state();
            if self.is_resumed && !state.clients.contains_key(&(self.user.clone(), client_id.clone())) {
                return Some(TurnClientTool::Away);
            }
            self.spec(&state, client_id, name).cloned()
        };
        let Some(spec) = spec else { return Some(TurnClientTool::Withdrawn) };
        // It was checked when it was declared; what it takes from other tools was checked there.
        let tool = RegisteredTool::under(spec.to_tool(&(self.base)()), wire_name);
        Some(tool.map_or(TurnClientTool::Withdrawn, |tool| TurnClientTool::Declared(spec, Box::new(tool))))
    }

    fn spec<'s>(
        &self,
        state: &'s ClientRegistryState,
        client_id: &str,
        tool: &ToolName,
    ) -> Option<&'s ClientToolSpec> {
        state.clients.get(&(self.user.clone(), client_id.to_owned()))?.declared.spec(tool)
    }

    /// Offers a call to its client, at once or when it comes back. `spec`: the tool with which it was looked at; if the client
    /// declares it otherwise by now, nothing is offered. `None` = whatever it is: who asked for the turn declares nothing, and
    /// what an earlier process has offered may have been run.
    pub(crate) fn offer_call(
        &self,
        (call, attempt): (CallId, u32),
        client_id: &str,
        (tool, arguments): (ToolName, Value),
        until: UnixMillis,
        spec: Option<ClientToolSpec>,
    ) -> CallOffer {
        let mut state = self.clients.state();
        if spec.is_some() && self.spec(&state, client_id, &tool) != spec.as_ref() {
            return CallOffer::Redefined;
        }
        let client = (self.user.clone(), client_id.to_owned());
        let turn = self.turn.clone();
        let incoming = IncomingCall { turn, call: call.clone(), attempt, tool, arguments, until };
        let commands = self.commands.clone();
        let (sent_to, is_cancelled) = (0, false);
        let open =
            OfferedCall { client: client.clone(), spec, sent_to, is_cancelled, commands, call: incoming };
        state.open_calls.insert(call, open);
        state.send_calls(&client);
        CallOffer::Made
    }

    /// The call is cancelled; its client may still report how it ended.
    pub(crate) fn cancel_call(&self, call: &CallId) {
        let mut state = self.clients.state();
        if let Some(open) = state.open_calls.get_mut(call) {
            open.is_cancelled = true;
            let client = open.client.clone();
            state.notify(&client, ClientEvent::Cancelled { call: call.clone() });
        }
    }

    /// Takes the ends of calls out of events that the log holds.
    pub(crate) fn observe(&self, events: &[Event]) {
        for event in events {
            let (EventKind::ToolResult(result), Some(call)) = (&event.kind, &event.tool_id) else { continue };
            let mut state = self.clients.state();
            if let Some(open) = state.open_calls.remove(call) {
                let closed_as = match result.status {
                    CallStatus::TimedOut | CallStatus::Unknown => {
                        // It is too late to ask the client to stop; it should know that nobody waits any more.
                        state.notify(&open.client, ClientEvent::Cancelled { call: call.clone() });
                        ClientAnswerResult::TooLate
                    }
                    _ => ClientAnswerResult::AlreadyClosed,
                };
                state.closed_calls.add(call.clone(), open.client.0, closed_as);
            }
        }
    }
}

impl Drop for TurnClients {
    fn drop(&mut self) {
        let mut state = self.clients.state();
        state.turns.remove(&self.turn);
        let abandoned: Vec<CallId> = state
            .open_calls
            .iter()
            .filter(|(_, open)| open.call.turn == self.turn)
            .map(|(call, _)| call.clone())
            .collect();
        for call in abandoned {
            if let Some(open) = state.open_calls.remove(&call) {
                state.notify(&open.client, ClientEvent::Cancelled { call: call.clone() });
                state.closed_calls.add(call, open.client.0, ClientAnswerResult::AlreadyClosed);
            }
        }
    }
}

impl fmt::Debug for ClientRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientRegistry").field(&self.state().clients.keys()).finish()
    }
}
