//! The clients as one turn sees them: the tools that it was offered, the calls that it offers.

use super::{
    ClientOwner, ClientRegistry, ClientRegistryState, ClientToolSpec, IncomingCall, OfferedCall,
    OfferedDefinition,
};
use crate::clients::ClientEvent;
use crate::driver::RegistryProvider;
use crate::turn::{ClientAnswerResult, CommandSender};
use std::collections::BTreeMap;
use std::time::Duration;
use throughline_engine::{CallRunner, CallStatus, Event, EventKind, OfferedTool, TurnId};
use throughline_tools::RegisteredTool;
use throughline_wire::{CallId, ToolName, WireName};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Longest time for which a turn that another process began waits for its clients: a year. An instant has an end.
const BACK_WITHIN_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A tool that was offered for a client, as it is now.
pub(crate) enum TurnClientTool {
    /// The client has disconnected, or no longer declares the tool.
    Withdrawn,
    /// The client may still reconnect: its grace period after the restart has not passed.
    Away {
        /// The rest of that time, in milliseconds.
        within_ms: i64,
    },
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

/// The clients as one turn sees them. Dropping it withdraws every call that the turn still offers.
pub(crate) struct TurnClients {
    clients: ClientRegistry,
    turn: TurnId,
    user: ClientOwner,
    commands: CommandSender,
    /// The tools of clients: the client that each was offered for, and its name at upstreams.
    offered: BTreeMap<ToolName, (String, WireName)>,
    /// The tools without those of clients.
    base: RegistryProvider,
    /// Deadline for clients to reconnect to this process, if another process began the turn.
    back_by: Option<Instant>,
    changes: watch::Receiver<u64>,
}

impl TurnClients {
    pub(crate) fn new(
        clients: ClientRegistry,
        turn: TurnId,
        user: ClientOwner,
        commands: CommandSender,
        (offered, base): (&[OfferedTool], RegistryProvider),
        is_resumed: bool,
    ) -> Self {
        let changes = {
            let mut state = clients.state();
            state.turns.insert(turn.clone(), (user.clone(), commands.clone()));
            state.revision.subscribe()
        };
        let back_by = is_resumed.then(|| Instant::now() + clients.0.grace.min(BACK_WITHIN_MAX));
        let by_client = |tool: &OfferedTool| match &tool.runs {
            CallRunner::Client { client_id } => Some((client_id.clone()?, tool.wire_name.clone())),
            _ => None,
        };
        let offered = offered.iter().filter_map(|tool| Some((tool.name.clone(), by_client(tool)?)));
        Self { clients, turn, user, commands, offered: offered.collect(), base, back_by, changes }
    }

    /// The turn.
    pub(crate) fn turn(&self) -> &TurnId {
        &self.turn
    }

    /// A tool that was offered for a client, as that client declares it now, regardless of declarations by
    /// the user's other clients. `None` if the tool belongs to no client.
    pub(crate) fn tool(&self, name: &ToolName) -> Option<TurnClientTool> {
        let (client_id, wire_name) = self.offered.get(name)?;
        let spec = {
            let state = self.clients.state();
            let left = self.back_by.map(|by| by.saturating_duration_since(Instant::now()));
            if let Some(left) = left.filter(|left| !left.is_zero())
                && !state.clients.contains_key(&(self.user.clone(), client_id.clone()))
            {
                let within_ms = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
                return Some(TurnClientTool::Away { within_ms });
            }
            self.spec(&state, client_id, name).cloned()
        };
        let Some(spec) = spec else { return Some(TurnClientTool::Withdrawn) };
        // It was checked when it was declared; what it takes from other tools was checked there.
        let tool = RegisteredTool::under(spec.to_tool(&(self.base)()), wire_name);
        Some(tool.map_or(TurnClientTool::Withdrawn, |tool| TurnClientTool::Declared(spec, Box::new(tool))))
    }

    /// Ends when a tool that was [`Away`](TurnClientTool::Away) may be so no more.
    pub(crate) async fn returned(&mut self) {
        let Some(by) = self.back_by else { return };
        tokio::select! {
            _ = self.changes.changed() => {}
            () = sleep_until(by) => {}
        }
    }

    fn spec<'s>(
        &self,
        state: &'s ClientRegistryState,
        client_id: &str,
        tool: &ToolName,
    ) -> Option<&'s ClientToolSpec> {
        state.clients.get(&(self.user.clone(), client_id.to_owned()))?.declared.spec(tool)
    }

    /// Offers a call to its client, immediately or when it reconnects. `spec` is the declaration that was
    /// checked; if the client's declaration differs by now, nothing is offered. `None` = the requester of the
    /// turn runs the call.
    pub(crate) fn offer_call(
        &self,
        (client_id, call): (&str, IncomingCall),
        spec: Option<ClientToolSpec>,
    ) -> CallOffer {
        let mut state = self.clients.state();
        if spec.is_some() && self.spec(&state, client_id, &call.tool) != spec.as_ref() {
            return CallOffer::Redefined;
        }
        self.add_call(&mut state, client_id, call, spec.map(OfferedDefinition::Declared));
        CallOffer::Made
    }

    /// Offers a call once more that an earlier process had offered: its client may have run it.
    pub(crate) fn offer_call_again(&self, (client_id, call): (&str, IncomingCall), fingerprint: String) {
        let wire_name = self.offered.get(&call.tool).map(|(_, wire_name)| wire_name.clone());
        let definition =
            wire_name.map(|name| OfferedDefinition::Fingerprint(fingerprint, name, (self.base)()));
        self.add_call(&mut self.clients.state(), client_id, call, definition);
    }

    fn add_call(
        &self,
        state: &mut ClientRegistryState,
        client_id: &str,
        call: IncomingCall,
        definition: Option<OfferedDefinition>,
    ) {
        let client = (self.user.clone(), client_id.to_owned());
        let commands = self.commands.clone();
        let (sent_to, is_cancelled, id) = (0, false, call.call.clone());
        let open = OfferedCall { client: client.clone(), definition, sent_to, is_cancelled, commands, call };
        state.open_calls.insert(id, open);
        state.send_calls(&client);
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
                        // It is too late to stop the client; the event tells it that the turn no longer
                        // waits.
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
