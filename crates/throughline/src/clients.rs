//! Connected pages and apps that run tools of their own: what they declare, what they are asked to run, what they answer.
//! R: L2
//!
//! A client is somebody's: its tools are offered in turns of its own user only, and only that user may answer for it.
//! Whether an answer is the first and in time is decided by the machine of the turn; here are only addresses.

mod answer;
mod declared;
mod handle;
mod own;

pub use answer::ClientAnswered;
pub use declared::{CLIENT_TOOLS_MAX, ClientError, ClientTool};
pub use handle::{ClientEvent, ClientHandle, IncomingCall};
pub use own::OWN_TOOLS_MAX;
pub(crate) use own::own_tools;

use crate::driver::Command;
use answer::Ended;
use declared::Declared;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use throughline_engine::{CallStatus, ClientAnswer, Event, EventKind, Input, Millis, REQUESTER, TurnId};
use throughline_tools::Registry;
use throughline_wire::{CallId, NotStarted, Outcome, ToolName};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// How long a client's tools stay offered after its connection is lost, unless the application says otherwise.
pub const CLIENT_GRACE_DEFAULT: Duration = Duration::from_secs(60);

/// Who a client belongs to. `None` = the one user of an application without accounts.
pub(crate) type User = Option<String>;

/// The clients of an application. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Clients(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    grace: Duration,
}

#[derive(Default)]
struct State {
    /// By user and id: what two users call their clients is nothing to each other.
    clients: BTreeMap<(User, String), Client>,
    /// Turns that are running: whose, and how they are told something.
    turns: HashMap<TurnId, (User, mpsc::Sender<Box<Command>>)>,
    /// Calls that are offered and have no outcome.
    open: HashMap<CallId, OpenCall>,
    /// How calls ended that are no longer open.
    ended: Ended,
    /// Counts connections: a later one comes before an earlier one.
    connections: u64,
    /// Counts changes of what is declared.
    changes: u64,
    merged: Option<Merged>,
}

struct Client {
    declared: Declared,
    connection: Connection,
    /// Its last connection's number.
    number: u64,
}

enum Connection {
    There(mpsc::UnboundedSender<ClientEvent>),
    /// Lost at this time.
    Lost(Instant),
}

struct OpenCall {
    /// Whose client, and which.
    client: (User, String),
    commands: mpsc::Sender<Box<Command>>,
    call: IncomingCall,
}

/// The last registry that was made with clients' tools, and of what.
struct Merged {
    base: Weak<Registry>,
    changes: u64,
    user: User,
    registry: Arc<Registry>,
}

impl Clients {
    pub(crate) fn new(grace: Duration) -> Self {
        Self(Arc::new(Inner { state: Mutex::default(), grace }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is made whole before the lock is let go.
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.forget_lost(self.0.grace);
        state
    }

    /// A client connects, or comes back: calls that are still open for it are offered once more.
    pub(crate) fn connect(
        &self,
        client_id: String,
        user: User,
        tools: Vec<ClientTool>,
    ) -> Result<ClientHandle, ClientError> {
        let declared = Declared::new(tools)?;
        if client_id == REQUESTER {
            return Err(ClientError::Reserved { client_id });
        }
        let mut state = self.state();
        // Unbounded is bounded here: there are no more events than calls, and those have their own limits.
        let (events, incoming) = mpsc::unbounded_channel();
        state.connections += 1;
        state.changes += 1;
        let number = state.connections;
        let id = (user, client_id);
        for open in state.open.values().filter(|open| open.client == id) {
            // It was made a moment ago; nobody can have let go of it.
            let _ = events.send(ClientEvent::Call(open.call.clone()));
        }
        let client = Client { declared, connection: Connection::There(events), number };
        state.clients.insert(id.clone(), client);
        drop(state);
        Ok(ClientHandle::new(self.clone(), id, number, incoming))
    }

    fn declare(&self, id: &(User, String), number: u64, tools: Vec<ClientTool>) -> Result<(), ClientError> {
        let declared = Declared::new(tools)?;
        let mut state = self.state();
        if let Some(client) = state.clients.get_mut(id).filter(|client| client.number == number) {
            client.declared = declared;
            state.changes += 1;
        }
        Ok(())
    }

    fn disconnect(&self, id: &(User, String), number: u64) {
        let mut state = self.state();
        // A later connection of the same client is not this one's to end.
        if let Some(client) = state.clients.get_mut(id).filter(|client| client.number == number) {
            client.connection = Connection::Lost(Instant::now());
        }
    }

    /// The tools of a turn of this user: those that there are, and those of the user's clients in their place.
    pub(crate) fn registry(&self, base: &Arc<Registry>, user: &User) -> Arc<Registry> {
        let mut state = self.state();
        let changes = state.changes;
        if let Some(merged) = &state.merged
            && merged.changes == changes
            && merged.user == *user
            && merged.base.upgrade().is_some_and(|known| Arc::ptr_eq(&known, base))
        {
            return merged.registry.clone();
        }
        let mut tools = BTreeMap::new();
        for client in state.of(user) {
            for tool in client.declared.tools(base) {
                tools.insert(tool.definition().name, tool);
            }
        }
        if tools.is_empty() {
            return base.clone();
        }
        // Each set was checked when it was declared; together they can only share names, and then the later one counts.
        let Ok(registry) = base.with(tools.into_values()) else { return base.clone() };
        let registry = Arc::new(registry);
        let merged =
            Merged { base: Arc::downgrade(base), changes, user: user.clone(), registry: registry.clone() };
        state.merged = Some(merged);
        registry
    }

    /// Who runs a client-side tool in a turn of this user: of several the one that connected last.
    pub(crate) fn client_of(&self, tool: &ToolName, user: &User) -> Option<String> {
        let state = self.state();
        let found = state
            .clients
            .iter()
            .filter(|((owner, _), client)| owner == user && client.declared.has(tool))
            .max_by_key(|(_, client)| client.number);
        found.map(|((_, client_id), _)| client_id.clone())
    }

    /// Somebody answers for a client.
    pub(crate) async fn answer(
        &self,
        user: &User,
        call: &CallId,
        attempt: Option<u32>,
        answer: ClientAnswer,
    ) -> ClientAnswered {
        let commands = {
            let state = self.state();
            match state.open.get(call) {
                // Whoever reads the log may know of a call a moment before it has been offered here.
                None => match (state.ended.of(call, user), state.turn_of(call)) {
                    (ClientAnswered::Unknown, Some((owner, _))) if owner != user => {
                        return ClientAnswered::NotYours;
                    }
                    (ClientAnswered::Unknown, Some((_, commands))) => commands.clone(),
                    (known, _) => return known,
                },
                Some(open) if open.client.0 != *user => return ClientAnswered::NotYours,
                Some(open) => open.commands.clone(),
            }
        };
        let (reply, answered) = oneshot::channel();
        let command = Command::ClientAnswers { call: call.clone(), attempt, answer, reply };
        if commands.send(Box::new(command)).await.is_err() {
            return ClientAnswered::AlreadyClosed;
        }
        // The turn went away without a word: nothing was taken.
        answered.await.unwrap_or(ClientAnswered::AlreadyClosed)
    }
}

impl State {
    /// The running turn that a call belongs to: its id begins with the turn's.
    fn turn_of(&self, call: &CallId) -> Option<&(User, mpsc::Sender<Box<Command>>)> {
        let (turn, _) = call.as_str().rsplit_once('.')?;
        self.turns.get(&TurnId::new(turn))
    }

    /// Clients of a user, the one that connected last at the end.
    fn of(&self, user: &User) -> Vec<&Client> {
        let of_user = self.clients.iter().filter(|((owner, _), _)| owner == user);
        let mut clients: Vec<&Client> = of_user.map(|(_, client)| client).collect();
        clients.sort_unstable_by_key(|client| client.number);
        clients
    }

    fn forget_lost(&mut self, grace: Duration) {
        let before = self.clients.len();
        self.clients.retain(|_, client| match client.connection {
            Connection::There(_) => true,
            Connection::Lost(at) => at.elapsed() < grace,
        });
        self.changes += u64::from(self.clients.len() != before);
    }

    fn tell(&self, id: &(User, String), event: ClientEvent) {
        if let Some(Client { connection: Connection::There(events), .. }) = self.clients.get(id) {
            // A client that has just gone will be asked again when it comes back.
            let _ = events.send(event);
        }
    }
}

/// Whether a client was asked to run this start before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    Now,
    /// By another process.
    Before,
}

/// The clients as one turn sees them. Dropping it takes back everything that the turn still offers.
pub(crate) struct Offers {
    clients: Clients,
    turn: TurnId,
    user: User,
    commands: mpsc::Sender<Box<Command>>,
}

impl Offers {
    pub(crate) fn new(
        clients: Clients,
        turn: TurnId,
        user: User,
        commands: mpsc::Sender<Box<Command>>,
    ) -> Self {
        clients.state().turns.insert(turn.clone(), (user.clone(), commands.clone()));
        Self { clients, turn, user, commands }
    }

    /// Offers a call to its client. If the client is not there any more, that is the answer.
    pub(crate) fn offer(
        &self,
        (call, attempt): (CallId, u32),
        client_id: &str,
        tool: ToolName,
        arguments: Value,
        until: Millis,
        offered: Offered,
    ) -> Option<Input> {
        let mut state = self.clients.state();
        let client = (self.user.clone(), client_id.to_owned());
        let is_there = state.clients.contains_key(&client);
        // Who asked for the turn needs no connection, and a client that was asked before this process began may come back:
        // it is asked when it does.
        if !is_there && client_id != REQUESTER && offered == Offered::Now {
            let outcome = Outcome::NotStarted(NotStarted::NoViewer);
            return Some(Input::ToolEnded { call, attempt, outcome });
        }
        let turn = self.turn.clone();
        let incoming = IncomingCall { turn, call: call.clone(), attempt, tool, arguments, until };
        state.tell(&client, ClientEvent::Call(incoming.clone()));
        let open = OpenCall { client, commands: self.commands.clone(), call: incoming };
        state.open.insert(call, open);
        None
    }

    /// A call is no longer wanted; its client may still say how it ended.
    pub(crate) fn cancel(&self, call: &CallId) {
        let state = self.clients.state();
        if let Some(open) = state.open.get(call) {
            state.tell(&open.client, ClientEvent::Cancelled { call: call.clone() });
        }
    }

    /// Takes the ends of calls out of events that the log holds.
    pub(crate) fn look_at(&self, events: &[Event]) {
        for event in events {
            let (EventKind::ToolResult(result), Some(call)) = (&event.kind, &event.tool_id) else { continue };
            let mut state = self.clients.state();
            if let Some(open) = state.open.remove(call) {
                let answered = match result.status {
                    CallStatus::TimedOut => {
                        // It is too late to ask the client to stop; it should know that nobody waits any more.
                        state.tell(&open.client, ClientEvent::Cancelled { call: call.clone() });
                        ClientAnswered::TooLate
                    }
                    _ => ClientAnswered::AlreadyClosed,
                };
                state.ended.add(call.clone(), open.client.0, answered);
            }
        }
    }
}

impl Drop for Offers {
    fn drop(&mut self) {
        let mut state = self.clients.state();
        state.turns.remove(&self.turn);
        let left: Vec<CallId> = state
            .open
            .iter()
            .filter(|(_, open)| open.call.turn == self.turn)
            .map(|(call, _)| call.clone())
            .collect();
        for call in left {
            if let Some(open) = state.open.remove(&call) {
                state.tell(&open.client, ClientEvent::Cancelled { call: call.clone() });
                state.ended.add(call, open.client.0, ClientAnswered::AlreadyClosed);
            }
        }
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clients").field(&self.state().clients.keys()).finish()
    }
}
